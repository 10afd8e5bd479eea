package wire_test

import (
	"strings"
	"testing"

	"holdfast/internal/wire"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	const canary = "CANARY0123456789abcdef"
	tests := []struct{ name, in, want string }{
		{"plain", "Number of request tokens has exceeded your limit", "Number of request tokens has exceeded your limit"},
		{"one line", "a\r\n\tb\u2028c\x00d", "a b c d"},
		{"tags", "<html><head><title>t</title></head><body><h1>502</h1><script>x<y</script>Bad&nbsp;Gateway</body>", "502 Bad Gateway"},
		{"comparison", "210000 < 200000 is false, a<5", "210000 < 200000 is false, a<5"},
		{"comment", "a<!-- <b> -->b", "a b"},
		{"unclosed tag", "a <div class=", "a"},
		{"escaped tag", "a &lt;b&gt; c", "a c"},
		{"direction marks", "a\u202eb\u200bc", "a b c"},
		{"anthropic key", "invalid x-api-key sk-ant-api03-" + canary + "-AA", "invalid x-api-key [redacted]"},
		{"openai key, masked", "Incorrect API key provided: sk-abc***xyz. See", "Incorrect API key provided: [redacted]. See"},
		{"key of no known form", "Incorrect API key provided: " + canary + ". See", "Incorrect API key provided: [redacted]. See"},
		{"number of a key", "API key usage limit: 100 a day", "API key usage limit: 100 a day"},
		{"short key", "key sk-CANARY-1 refused", "key [redacted] refused"},
		{"virtual key", "unknown vk-" + canary, "unknown [redacted]"},
		{"client key of the gateway", "unknown hf-" + canary, "unknown [redacted]"},
		{"key inside a word", "xsk-" + canary, "x[redacted]"},
		{"bearer", "Authorization: Bearer " + canary, "Authorization: [redacted] [redacted]"},
		{"bearer alone", "got bearer " + canary + "!", "got bearer [redacted]!"},
		{"google key", "AIza" + canary, "[redacted]"},
		{"aws key", "AKIAIOSFODNN7EXAMPLE used", "[redacted] used"},
		{"jwt", "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_ bad", "token [redacted] bad"},
		{"json field", `{"api_key": "` + canary + `"}`, `{"api_key": "[redacted]"}`},
		{"query", "GET https://h.example/v1/x?key=" + canary + "&a=b failed", "GET https://h.example/v1/x failed"},
		{"path query", "POST /v1/x?api-version=1&key=" + canary + " failed", "POST /v1/x failed"},
		{"key alone", "key=" + canary + "&a=b", "key=[redacted]&a=b"},
		{"url password", "https://user:" + canary + "@h.example/x", "https://h.example/x"},
		{"request id stays", "req_011CSHoEeqs5C35K2UUqR7Fy", "req_011CSHoEeqs5C35K2UUqR7Fy"},
		{"model name stays", "model claude-sonnet-4-5-20250929 not found", "model claude-sonnet-4-5-20250929 not found"},
		{"max_tokens stays", "max_tokens: 4096 > 2048", "max_tokens: 4096 > 2048"},
		{"hyphens stay", "risk-averse disk-full task-force", "risk-averse disk-full task-force"},
		{"invalid bytes", "a\xffb", "a\uFFFDb"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := wire.Scrub(tt.in, 200); got != tt.want {
				t.Errorf("Scrub(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestScrubShortens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		max  int
		want string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"日本語です", 3, "日本…"},
		{"abc def", 5, "abc…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
	}
	for _, tt := range tests {
		if got := wire.Scrub(tt.in, tt.max); got != tt.want {
			t.Errorf("Scrub(%q, %d) = %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

// A limit on the input must not cut a key so that its first half is no longer
// known as one.
func TestScrubOfALongTextHidesAKeyAtEveryOffset(t *testing.T) {
	t.Parallel()
	for pad := 16<<10 - 60; pad <= 16<<10; pad++ {
		text := strings.Repeat("<p>", pad/3) + strings.Repeat(" ", pad%3) + " key sk-ant-CANARYCANARYCANARYCANARYCANARY end"
		if got := wire.Scrub(text, 200); strings.Contains(got, "CANARY") {
			t.Fatalf("at %d: %q", pad, got)
		}
	}
}

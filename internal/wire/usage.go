package wire

// Tokens counts the tokens of one answer, in the Anthropic way for both
// dialects: Input leaves out cached tokens, which CacheRead and CacheWrite
// hold, so that the sum of the three is the whole prompt.
type Tokens struct{ Input, Output, CacheRead, CacheWrite int }

// Usage returns the token counts of a complete JSON answer of either dialect,
// and false when it carries none.
func Usage(body []byte) (Tokens, bool) {
	var tokens Tokens
	found := tokens.replace(parse(plain(body).text).get("usage"))
	return tokens, found
}

// replace takes every count that usage carries and keeps the others, because
// the counts in a stream are cumulative and a later event may repeat only some
// of them. It reports whether there was any.
func (t *Tokens) replace(usage node) bool {
	if !usage.isObject() {
		return false
	}
	found := false
	take := func(into *int, names ...string) {
		for _, name := range names {
			if count, ok := usage.get(name).count(); ok {
				*into, found = count, true
				return
			}
		}
	}
	prompt := -1
	take(&prompt, "input_tokens", "prompt_tokens")
	take(&t.Output, "output_tokens", "completion_tokens")
	take(&t.CacheRead, "cache_read_input_tokens")
	take(&t.CacheWrite, "cache_creation_input_tokens")
	if prompt >= 0 {
		t.Input = prompt
	}
	for _, name := range []string{"input_tokens_details", "prompt_tokens_details"} {
		if details := usage.get(name); prompt >= 0 && details.isObject() {
			// OpenAI counts cached tokens inside the prompt.
			t.CacheRead, _ = details.get("cached_tokens").count()
			t.CacheWrite, _ = details.get("cache_write_tokens").count()
			t.Input = max(0, prompt-t.CacheRead-t.CacheWrite)
		}
	}
	return found
}

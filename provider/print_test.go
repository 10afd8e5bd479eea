package provider_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"holdfast/provider"
)

// However settings are printed, their key is not.
func TestSettingsDoNotShowTheirKey(t *testing.T) {
	s := provider.Settings{Provider: provider.Bedrock, Region: region, Key: canary, URL: "https://u:" + canary + "@h"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "settings", s, "also", &s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprint(&s), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s), fmt.Sprintf("%+v", struct{ S provider.Settings }{s}), s.String(), log.String()} {
		if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || !strings.Contains(text, "bedrock region=us-east-1 key=[hidden]") {
			t.Errorf("it prints %s", text)
		}
	}
}

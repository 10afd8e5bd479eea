package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/config"
)

func TestFileStandsForAValue(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(path)
	}
	good, long := write("good", "sk-CANARY-good\r\n"), write("long", strings.Repeat("sk-CANARY-long", 10_000))
	spaced := write("spaced", "sk-CANARY spaced\n")
	t.Setenv("TEST_FOLDER_KEY", "sk-CANARY-variable")
	for _, row := range []struct{ name, key, want, wrong string }{
		{name: "a file, without its line end", key: "${file:" + good + "}", want: "sk-CANARY-good"},
		{name: "a variable", key: "${TEST_FOLDER_KEY}", want: "sk-CANARY-variable"},
		{name: "both", key: "${file:" + good + "}+${TEST_FOLDER_KEY}", want: "sk-CANARY-good+sk-CANARY-variable"},
		{name: "no such file", key: "${file:" + folder + "/none}", wrong: "line 1: targets.0.key: ${file:…}: "},
		{name: "no path", key: "${file:}", wrong: "line 1: targets.0.key: ${file:…}: "},
		{name: "a folder", key: "${file:" + folder + "}", wrong: "is not a file"},
		{name: "a file that is no key", key: "${file:" + long + "}", wrong: "is longer than 65536 bytes"},
		{name: "a file with more than a key", key: "${file:" + spaced + "}", wrong: "holds a character that no key has, at place 10 of 16"},
		{name: "two mistakes", key: "${file:" + folder + "/none}${TEST_NOT_SET}", wrong: "environment variable ${TEST_NOT_SET} is not set"},
		{name: "a key in the wrong place", key: "${sk-CANARY-place}", wrong: "must hold the name of an environment variable, or file: and the path of a file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, err := config.Parse([]byte(`targets: [{name: a, url: "http://127.0.0.1:1", key: "` + row.key + `"}]`))
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) || strings.Contains(err.Error(), "CANARY") {
					t.Errorf("error %v, want %q and no key", err, row.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Targets[0].Key.Reveal(); got != row.want {
				t.Errorf("key %q, want %q", got, row.want)
			}
		})
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

func openBook(t *testing.T) *savedBook {
	t.Helper()
	b, err := openSavedBook(filepath.Join(t.TempDir(), "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func answerTo(question, text string) savedAnswer {
	return savedAnswer{Question: hashOf(question), Model: "m", Text: text, SavedAt: time.Unix(0, 0).UTC()}
}

func TestSavedBookKeepsOneAnswerPerQuestionAndModel(t *testing.T) {
	b := openBook(t)
	other := answerTo("a", "of another model")
	other.Model = "n"
	for _, a := range []savedAnswer{answerTo("a", "old"), answerTo("b", "second"), other, answerTo("a", "new")} {
		if err := b.keep(a); err != nil {
			t.Fatal(err)
		}
	}
	f, err := b.read()
	if err != nil || len(f.Answers) != 3 {
		t.Fatalf("%d answers, %v; want 3", len(f.Answers), err)
	}
	for _, row := range []struct{ question, model, want string }{{"a", "m", "new"}, {"b", "m", "second"}, {"a", "n", "of another model"}} {
		if got := b.find(row.question, row.model); got == nil || got.Text != row.want {
			t.Errorf("find(%q, %q) = %v, want %q", row.question, row.model, got, row.want)
		}
	}
	if got := b.find("b", "n"); got != nil {
		t.Errorf("found %v where nothing was kept", got)
	}
}

// Writers at the same time lose no answer, and a reader never meets half a file.
func TestSavedBookIsSharedSafely(t *testing.T) {
	b := openBook(t)
	const writers = 20
	done := make(chan struct{})
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := b.read(); err != nil {
					t.Errorf("a reader met %v", err)
					return
				}
			}
		}
	})
	for i := range writers {
		writing.Go(func() {
			if err := b.keep(answerTo(fmt.Sprint(i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	if f, err := b.read(); err != nil || len(f.Answers) != writers {
		t.Errorf("%d answers, %v; want %d", len(f.Answers), err, writers)
	}
}

func TestSavedBookLeavesNothingLyingAbout(t *testing.T) {
	b := openBook(t)
	if err := b.keep(answerTo("a", "x")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(b.path))
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v; want the file and its lock", entries, err)
	}
	if info, err := os.Stat(b.path); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
		t.Errorf("the file's mode is %v, %v; want 0600", info.Mode(), err)
	}
}

func TestSavedBookFollowsALink(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target.json"), filepath.Join(folder, "link.json")
	if err := os.WriteFile(target, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	b, err := openSavedBook(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.keep(answerTo("a", "x")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(target)
	var f savedFile
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Answers) != 1 {
		t.Errorf("behind the link is %s, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

func FuzzSavedBook(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"answers":[{"model":"m"}]}`, `{"answers":7}`, "null", "[]", `{"answers":[null]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "answers.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := openSavedBook(path)
		if err != nil {
			if kept, _ := os.ReadFile(path); string(kept) != string(text) {
				t.Error("a file that cannot be used was changed")
			}
			return
		}
		if err := b.keep(answerTo("q", "a")); err != nil {
			t.Fatal(err)
		}
		if got := b.find("q", "m"); got == nil || got.Text != "a" {
			t.Errorf("kept in %q, found %v", text, got)
		}
	})
}

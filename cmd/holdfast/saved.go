package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"holdfast"
)

// savedAnswer is one entry of a saved book. Question is the SHA-256 of the question in hex: the file holds answers, and
// no questions.
type savedAnswer struct {
	Question  string    `json:"question_sha256"`
	Model     string    `json:"model"`
	SavedAt   time.Time `json:"saved_at"`
	Text      string    `json:"text"`
	Input     int64     `json:"input_tokens"`
	Output    int64     `json:"output_tokens"`
	RequestID string    `json:"request_id"`
}

// savedBook is a file of good answers, one for each question and model. Several processes may keep answers in it at
// once: the file is replaced as a whole, under a lock that stands beside it.
type savedBook struct{ path string }

// savedFile is what the file holds.
type savedFile struct {
	Answers []savedAnswer `json:"answers"`
}

// openSavedBook makes sure, before the call, that the file can be read and replaced.
func openSavedBook(path string) (*savedBook, error) {
	b := &savedBook{path: path}
	if _, err := b.read(); err != nil {
		return nil, badUsage("move the file away, or name another with --saved", "cannot read the saved answers: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		b.path = target // the file is replaced, not the link to it
	}
	probe, err := os.CreateTemp(filepath.Dir(b.path), ".holdfast-*")
	if err != nil {
		return nil, badUsage("--saved takes a file in a folder that can be written", "cannot save answers: %w", err)
	}
	return b, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (b *savedBook) read() (savedFile, error) {
	var f savedFile
	text, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if len(text) == 0 { // as mktemp makes it
		return f, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // another program's file must not be written over
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("%s is not a file of saved answers: %w", b.path, err)
	}
	if text = bytes.TrimSpace(text); text[0] != '{' || d.More() { // null decodes into anything
		return f, fmt.Errorf("%s is not a file of saved answers", b.path)
	}
	return f, nil
}

func hashOf(question string) string {
	sum := sha256.Sum256([]byte(question))
	return hex.EncodeToString(sum[:])
}

// find returns the saved answer to a question, nil when there is none.
func (b *savedBook) find(question, model string) *savedAnswer {
	f, err := b.read()
	if err != nil {
		return nil
	}
	for i, a := range f.Answers {
		if a.Question == hashOf(question) && a.Model == model {
			return &f.Answers[i]
		}
	}
	return nil
}

// keep puts an answer in the place of the earlier one. Whoever reads meanwhile sees the old file or the new one, whole.
func (b *savedBook) keep(a savedAnswer) (err error) {
	unlock, err := lockedfile.MutexAt(b.path + ".lock").Lock()
	if err != nil {
		return err
	}
	defer unlock()
	f, err := b.read()
	if err != nil {
		return err
	}
	answers := []savedAnswer{a}
	for _, old := range f.Answers {
		if old.Question != a.Question || old.Model != a.Model {
			answers = append(answers, old)
		}
	}
	text, err := json.MarshalIndent(savedFile{answers}, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(b.path, append(text, '\n'))
}

// replaceFile writes a file that only its owner can read, all of it or nothing.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".holdfast-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// load is where Do looks when nothing live works.
func (a *asker) load(_ context.Context, cause error) (*reply, bool) {
	a.why = cause
	if a.saved == nil {
		return nil, false
	}
	a.kept = a.saved.find(a.question, a.options.model)
	return nil, a.kept != nil
}

func (a *asker) savedAnswer(r *reply) savedAnswer {
	return savedAnswer{
		Question: hashOf(a.question), Model: a.options.model, SavedAt: time.Now().UTC().Truncate(time.Second),
		Text: text(r.message), Input: r.message.Usage.InputTokens, Output: r.message.Usage.OutputTokens, RequestID: r.requestID,
	}
}

// giveSaved prints a saved answer so that nobody takes it for a live one.
func (a *asker) giveSaved(trace *holdfast.Trace) error {
	say(a.err, "nothing live worked: %v", a.why)
	say(a.err, "%s", label(a.kept.SavedAt))
	if a.options.json {
		return giveJSON(a.out, a.savedReport(trace))
	}
	return give(a.out, a.kept.Text+"\n")
}

// label marks a saved answer.
func label(at time.Time) string {
	return fmt.Sprintf("[saved answer of %s]", at.UTC().Format("2006-01-02 15:04 UTC"))
}

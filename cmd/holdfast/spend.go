package main

import (
	"fmt"
	"os"
	"time"
)

// spendBook is a file with a line for every attempt that was billed: time, model, tokens, request id. It holds no
// question and no answer. Several processes may append at once.
type spendBook struct{ file *os.File }

func openSpendBook(path string) (*spendBook, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, badUsage("--usage takes a file that can be written", "cannot write the usage: %w", err)
	}
	return &spendBook{f}, nil
}

// add writes the attempt's line, unless the attempt cost nothing.
func (b *spendBook) add(now time.Time, r *reply, model string) error {
	u := r.message.Usage
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		return nil
	}
	line := fmt.Sprintf("%s model=%s input=%d output=%d", now.UTC().Format(time.RFC3339), model, u.InputTokens, u.OutputTokens)
	if u.CacheReadInputTokens > 0 || u.CacheCreationInputTokens > 0 {
		line += fmt.Sprintf(" cache_read=%d cache_write=%d", u.CacheReadInputTokens, u.CacheCreationInputTokens)
	}
	if r.stream != nil && !r.over {
		line += " cut=true" // the output is what was reported before the cut, and may have been more
	}
	_, err := b.file.WriteString(line + " request=" + printable(r.requestID) + "\n") // one write, so that lines stay whole
	return err
}

func (b *spendBook) close() { _ = b.file.Close() } // every line was checked when it was written

package wire

// Tokens counts the tokens of one answer. Input excludes cached tokens, as
// in the Anthropic dialect; CacheRead and CacheWrite hold those.
type Tokens struct{ Input, Output, CacheRead, CacheWrite int }

// Usage returns the token counts of a complete JSON answer of either dialect,
// and false when it carries none.
func Usage(body []byte) (Tokens, bool) { return Tokens{}, false }

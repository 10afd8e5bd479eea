package holdfast

import "sync"

// once lets only the first call through, whichever goroutine makes it.
func once(end func(Tokens, error)) func(Tokens, error) {
	var first sync.Once
	return func(used Tokens, err error) { first.Do(func() { end(used, err) }) }
}

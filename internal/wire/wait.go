package wire

import (
	"net/http"
	"time"
)

// Wait returns how long the server asks to wait before the next attempt and
// where it said so: "retry-after-ms", "retry-after", "bucket" or "body".
// A wait that is zero, negative, malformed or past is absent: 0 and "".
func Wait(h http.Header, body []byte, now time.Time) (d time.Duration, from string) {
	return 0, ""
}

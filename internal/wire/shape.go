package wire

// ErrorBody returns the JSON error body of a dialect. Empty arguments are left
// out or null, as the dialect does it.
func ErrorBody(d Dialect, typ, code, message, requestID string) []byte { return []byte(`{}`) }

// ErrorType returns the error.type that a status carries in a dialect.
func ErrorType(d Dialect, status int) string { return "api_error" }

// StatusOf returns the HTTP status that an error.type has in a dialect; 0 when
// the type is not known.
func StatusOf(d Dialect, typ string) int { return 0 }

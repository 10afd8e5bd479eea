package wire

// Safe reports whether a request may be sent again when the outcome of an
// earlier attempt is unknown. An unknown POST is not safe.
func Safe(method, path string, body []byte) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS"
}

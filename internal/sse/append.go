package sse

import "bytes"

// Append adds one frame to dst and returns it: an "event" field unless name is
// empty, the data, and a blank line, all with LF. Data that holds line ends of
// any kind becomes several "data" fields, so that a reader joins it with LF
// again; empty data still makes an event. Line ends inside name are dropped.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		for i := range len(name) {
			if c := name[i]; c != '\n' && c != '\r' {
				dst = append(dst, c)
			}
		}
		dst = append(dst, '\n')
	}
	for {
		at := lineEnd(data, 0)
		if at < 0 {
			break
		}
		dst = appendLine(dst, data[:at])
		if bytes.HasPrefix(data[at:], []byte("\r\n")) {
			at++
		}
		data = data[at+1:]
	}
	dst = appendLine(dst, data)
	return append(dst, '\n')
}

func appendLine(dst, line []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, line...)
	return append(dst, '\n')
}

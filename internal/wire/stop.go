package wire

// StopReason returns why the model stopped, in the dialect's own word, from a
// complete JSON answer; "" when it does not say so. It is what
// Stream.StopReason is for a stream, and the first choice's of several.
func StopReason(body []byte) string {
	answer := parse(plain(body).text)
	if choice := answer.get("choices").first(); len(choice) > 0 {
		return choice.get("finish_reason").text()
	}
	if answer.get("object").is("response") {
		return firstText(answer.get("incomplete_details", "reason").text(), answer.get("status").text())
	}
	return answer.get("stop_reason").text()
}

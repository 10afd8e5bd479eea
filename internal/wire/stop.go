package wire

// Summary returns the token counts of a complete JSON answer of either dialect and why
// the model stopped, in the dialect's own word. Either is zero when the answer does
// not say.
func Summary(body []byte) (Tokens, string) {
	var answer outline
	answer.read(parse(plain(body).text))
	var tokens Tokens
	tokens.replace(answer.get("usage"))
	return tokens, answer.stopReason()
}

// stopReason is that of the first choice, where there are several.
func (o *outline) stopReason() string {
	if choice := o.get("choices").first(); len(choice) > 0 {
		return choice.get("finish_reason").text()
	}
	if o.get("object").is("response") {
		return firstText(o.get("incomplete_details").get("reason").text(), o.get("status").text())
	}
	return o.get("stop_reason").text()
}

package standin

var okFault = &fault{Fault: Fault{
	Kind: OK,
	What: "a complete answer",
	Doc: `No fault: the answer, useful between faults and for the pace and the framing of a stream. A delay holds back even the
headers; first_token and gap hold back content, with pings meanwhile if ping is set. lines, writes, between and gzip change how
the bytes of a stream are cut without changing what they say, so a correct client notices nothing.`,
	Fields: framed,
}}

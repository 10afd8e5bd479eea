package standin

import (
	"slices"

	"holdfast/internal/sse"
	"holdfast/standin/internal/answer"
)

var cutFault = &fault{
	Fault: Fault{
		Kind: Cut,
		What: "a stream that ends before its end",
		Doc: `The stream ends at a stage, after so many content events, in the way that how says: clean ends the body properly, as if it were complete
(at stop that is a stream without its terminal event and nothing else amiss); chunk closes the connection without the last chunk; rst resets
it; stall keeps it open and silent until the client leaves. torn sends a part of the next event first: frame up to the middle of its
data, rune up to the middle of a character. An answer that is not a stream is cut in its middle. What was made before the cut is billed;
of an answer that is not a stream, all.`,
		Fields: slices.Concat([]string{"how", "torn"}, placed, framed),
	},
	shape: func(s Step, o *answer.Options) {
		if s.Torn == TornRune {
			o.Rune = s.After + 1
		}
	},
	whole: func(a *reply, r result) bool {
		body := a.coded(r.body)
		sent := body[:len(body)/2]
		if a.step.At == First {
			sent = nil
		}
		length := len(body)
		if a.step.How == Clean {
			length = -1 // a wrong length would show that something is missing
		}
		a.start(r.status, r.contentType, length)
		a.write(sent)
		a.end(a.step.How)
		return true
	},
	meet: func(a *reply, out *stream, next answer.Event) bool {
		switch a.step.Torn {
		case TornFrame:
			out.raw(torn(next))
		case TornRune:
			out.raw(tornInRune(next))
		}
		out.flush()
		a.end(a.step.How)
		return false
	},
}

// torn is the frame of an event up to the middle of its data.
func torn(e answer.Event) []byte {
	frame := sse.Append(nil, e.Name, e.Data)
	return frame[:len(frame)-len("\n\n")-(len(e.Data)+1)/2]
}

// tornInRune is the frame of an event up to the first byte of its first
// character of several bytes, or up to the middle when it has none.
func tornInRune(e answer.Event) []byte {
	frame := sse.Append(nil, e.Name, e.Data)
	if i := slices.IndexFunc(frame, func(b byte) bool { return b >= 0xc0 }); i >= 0 {
		return frame[:i+1]
	}
	return torn(e)
}

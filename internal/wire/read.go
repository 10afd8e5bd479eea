package wire

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Read returns the facts of a complete HTTP answer: an error reply, or a 2xx
// that may hold an error, nothing at all, or half an answer. A gzip body is
// unpacked, up to 1 MiB. now is the local clock, used where the response has no
// Date of its own. h may be nil.
//
// A healthy answer comes back as FaultNone with Wait 0, whatever its headers
// say. A 200 without an answer is FaultEmpty with status 502. The body of a
// HEAD request is empty by nature: do not ask about it.
func Read(status int, h http.Header, body []byte, now time.Time) Reply {
	content := plain(body)
	if status >= 200 && status < 300 {
		return readAnswer(status, h, content, now)
	}
	node, p := problemOf(content.text)
	p.fromHeaders(h)
	fault, name := p.judge(status, false)
	return p.reply(Reply{Status: status, Fault: fault, Rule: name}, h, node, now)
}

// ReadEvent returns the facts of an error that came inside an event stream:
// an Anthropic error event, an OpenAI error object or response.failed, an AWS
// exception, or anything else that ended a stream. event is the event's name,
// or "" when it has none; h holds the headers of the response that opened the
// stream and may be nil. An error that says nothing known is FaultServer.
func ReadEvent(event string, data []byte, h http.Header, now time.Time) Reply {
	node, p := problemOf(data)
	if p.typ == "" && isException(event) {
		p.typ = event
	}
	return p.inBand(h, node, now)
}

// readAnswer looks for what is wrong in a 2xx.
func readAnswer(status int, h http.Header, content content, now time.Time) Reply {
	fault, name := answerFault(status, h.Get("Content-Type"), content)
	switch fault {
	case faultInside:
		node, p := problemOf(content.text)
		return p.inBand(h, node, now)
	case FaultEmpty:
		p := problem{}
		p.fromHeaders(h)
		return p.reply(Reply{Status: http.StatusBadGateway, InBand: true, Fault: fault, Rule: name}, h, nil, now)
	default:
		p := problem{}
		if p.fromHeaders(h); p.requestID == "" {
			p.requestID = parse(content.text).get("request_id").text()
		}
		return Reply{Status: status, Fault: fault, Rule: name, RequestID: Scrub(p.requestID, nameLimit), Retry: advice(h)}
	}
}

// problemOf reads an error body that may be JSON, HTML or text.
func problemOf(text []byte) (node, problem) {
	if len(text) > bodyLimit {
		text = text[:bodyLimit]
	}
	node := parse(bytes.TrimSpace(text))
	switch {
	case node.isObject(), node.isArray():
		return node, problemIn(node)
	case node.isString():
		return nil, textProblem([]byte(node.text()))
	default:
		return nil, textProblem(text)
	}
}

func (p problem) inBand(h http.Header, body node, now time.Time) Reply {
	p.fromHeaders(h)
	status := p.inBandStatus()
	fault, name := p.judge(status, true)
	return p.reply(Reply{Status: status, InBand: true, Fault: fault, Rule: name}, h, body, now)
}

// reply fills in what does not depend on the fault, and what spending needs.
func (p problem) reply(r Reply, h http.Header, body node, now time.Time) Reply {
	r.Type, r.Code = Scrub(p.typ, nameLimit), Scrub(p.code, nameLimit)
	r.Message = Scrub(p.message, messageLimit)
	r.RequestID = Scrub(p.requestID, nameLimit)
	r.Retry = advice(h)
	server := serverTime(h, now)
	r.Wait, r.WaitFrom = wait(h, body, server)
	if r.Fault == FaultSpend {
		r.Resumes = p.resumes(r.Wait, server)
	}
	return r
}

func advice(h http.Header) Advice {
	switch strings.ToLower(strings.TrimSpace(h.Get("X-Should-Retry"))) {
	case "true":
		return AdviceRetry
	case "false":
		return AdviceStop
	default:
		return AdviceNone
	}
}

// resumeText finds "2026-12-01", "2026-12-01 at 00:00" and "2026-12-01T00:00:00".
var resumeText = regexp.MustCompile(`\b(\d{4}-\d{2}-\d{2})(?:(?: at |T| )(\d{2}:\d{2}))?`)

// resumes returns when spending is possible again; zero when nothing says so.
// A tier's monthly cap ends with the month, in UTC.
func (p problem) resumes(wait time.Duration, now time.Time) time.Time {
	if strings.EqualFold(p.code, "enforced_spend_limit_reached") || strings.EqualFold(p.typ, "enforced_spend_limit_reached") {
		year, month, _ := now.UTC().Date()
		return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
	}
	for _, found := range resumeText.FindAllStringSubmatch(p.message, 4) {
		moment, err := time.Parse("2006-01-02 15:04", found[1]+" "+firstText(found[2], "00:00"))
		if err == nil && moment.After(now) {
			return moment
		}
	}
	if wait > 0 {
		return now.Add(wait).UTC()
	}
	return time.Time{}
}

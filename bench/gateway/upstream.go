package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// work is what a request asks of the upstream, in the header x-work.
type work string

const (
	message work = "message" // a small answer as JSON
	words   work = "words"   // a stream of a few words, at once
	slow    work = "slow"    // a word at once, then one each second, for a while
	long    work = "long"    // a stream of two megabytes, as fast as it is taken
)

const (
	slowWords = 6
	longWords = 16_000
)

// upstream answers on the listener until it is closed. It is the cheapest server that a client takes for the real one.
func upstream(l net.Listener) error {
	replies := map[work][]byte{message: messageReply(), words: wordsReply(), long: longReply()}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go answer(conn, replies)
	}
}

func answer(conn net.Conn, replies map[work][]byte) {
	defer func() { _ = conn.Close() }()
	for r := bufio.NewReaderSize(conn, 16<<10); ; {
		h, err := readHead(r)
		if err != nil {
			return
		}
		if _, err := readBody(r, h, nil); err != nil {
			return
		}
		reply, ok := replies[h.work]
		switch {
		case h.work == slow:
			err = trickle(conn)
		case ok:
			_, err = conn.Write(reply)
		default:
			_, err = conn.Write(replies[message])
		}
		if err != nil {
			return
		}
	}
}

// usualHeaders are those that the Claude API sends with every answer.
func usualHeaders() string {
	reset := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	text := "Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\nRequest-Id: req_011CSHoEeqs5C35K2UUqR7Fy\r\n" +
		"Anthropic-Organization-Id: 00000000-0000-0000-0000-000000000000\r\nServer: cloudflare\r\nCf-Cache-Status: DYNAMIC\r\nX-Robots-Tag: none\r\n"
	for _, limit := range []string{"Requests", "Input-Tokens", "Output-Tokens", "Tokens"} {
		text += fmt.Sprintf("Anthropic-Ratelimit-%[1]s-Limit: 100000000\r\nAnthropic-Ratelimit-%[1]s-Remaining: 99999999\r\nAnthropic-Ratelimit-%[1]s-Reset: %[2]s\r\n", limit, reset)
	}
	return text
}

func messageReply() []byte {
	body := `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"text",` +
		`"text":"The sky looks blue because air scatters short waves of light more than long ones."}],"stop_reason":"end_turn","stop_sequence":null,` +
		`"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":21,"service_tier":"standard"}}`
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", usualHeaders(), len(body), body)
}

func event(name, data string) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data)
}

func opening() []byte {
	return bytes.Join([][]byte{
		event("message_start", `,"message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}`),
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
	}, nil)
}

func word(text string) []byte {
	return event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, text))
}

func closing() []byte {
	return bytes.Join([][]byte{
		event("content_block_stop", `,"index":0`),
		event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":21}`),
		event("message_stop", ""),
	}, nil)
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

func streamReply(n int) []byte {
	reply := appendChunk([]byte(streamHead), opening())
	for i := range n {
		reply = appendChunk(reply, word(fmt.Sprintf(" word%d", i)))
	}
	return append(appendChunk(reply, closing()), "0\r\n\r\n"...)
}

func wordsReply() []byte { return streamReply(20) }

func longReply() []byte { return streamReply(longWords) }

// trickle is a stream of a slow model.
func trickle(conn net.Conn) error {
	first := appendChunk([]byte(streamHead), opening())
	if _, err := conn.Write(appendChunk(first, word("first"))); err != nil {
		return err
	}
	for range slowWords {
		time.Sleep(time.Second) //nolint:forbidigo // nobody waits for it to be interrupted: the process is killed
		if _, err := conn.Write(appendChunk(nil, word(" slow"))); err != nil {
			return err
		}
	}
	_, err := conn.Write(append(appendChunk(nil, closing()), "0\r\n\r\n"...))
	return err
}

// request is one that asks for the work, with a prompt of about so many tokens.
func request(w work, tokens int) []byte {
	stream := ""
	if w != message {
		stream = `"stream":true,`
	}
	prompt := "Why is the sky blue?"
	if tokens > 0 {
		prompt = strings.Repeat("word ", tokens*4/len("word "))
	}
	body := fmt.Sprintf(`{"model":"claude-sonnet-5-5","max_tokens":1024,%s"messages":[{"role":"user","content":%q}]}`, stream, prompt)
	return fmt.Appendf(nil, "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n"+
		"User-Agent: Anthropic/Go 1.40.0\r\nX-Api-Key: sk-ant-api03-not-a-key\r\nAnthropic-Version: 2023-06-01\r\nX-Stainless-Retry-Count: 0\r\n"+
		"X-Work: %s\r\nContent-Length: %d\r\n\r\n%s", w, len(body), body)
}

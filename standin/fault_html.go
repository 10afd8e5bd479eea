package standin

import "net/http"

var htmlFault = &fault{
	Fault: Fault{
		Kind: HTML,
		What: "a 200 with a web page",
		Doc:  `A 200 with a page of HTML, as from a captive portal or a proxy that sends everybody to its welcome page. Nothing is billed.`,
	},
	instead: func(a *reply) { a.send(http.StatusOK, "text/html; charset=utf-8", []byte(webPage)) },
}

package standin

var resetFault = &fault{
	Fault: Fault{
		Kind: Reset,
		What: "a broken connection before the work",
		Doc: `The whole request is read and the connection is reset before any work is done and any byte of a reply is sent. Nothing
is billed; but the client cannot tell this from lost, which is.`,
	},
	instead: (*reply).reset,
}

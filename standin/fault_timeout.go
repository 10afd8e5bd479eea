package standin

var timeoutFault = &fault{
	Fault: Fault{
		Kind: Timeout,
		What: "no byte until the client leaves",
		Doc: `The request is taken and no byte comes back until the client leaves. The work is done and billed: a provider does not
notice that nobody waits, so a client that gives up and repeats the call pays twice.`,
	},
	instead: func(a *reply) {
		a.loseWork()
		a.hang()
	},
}

package standin

import "slices"

var lostFault = &fault{
	Fault: Fault{
		Kind: Lost,
		What: "the work is done and billed, and the reply is lost",
		Doc: `The lost acknowledgement: the answer is made and billed, the batch or the file exists, and then the connection breaks before any byte
of the reply, by a reset or, with how stall, by silence until the client leaves. The report counts what is done again for it as
paid twice.`,
		Fields: []string{"how"},
	},
	instead: func(a *reply) {
		a.loseWork()
		if slices.Contains([]Ending{RST, Silence}, a.step.How) {
			a.end(a.step.How)
		}
		a.reset()
	},
}

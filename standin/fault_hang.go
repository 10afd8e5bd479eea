package standin

var hangFault = &fault{Fault: Fault{
	Kind: Hang,
	What: "a connection that is accepted and never read",
	Doc: `For the timeline alone: while the incident is on, new connections are accepted and then nothing of them is read or answered until the
incident ends and they are closed, as by a balancer in front of nothing. It needs a server that was started by Start; no request, no exchange in the journal.`,
}}

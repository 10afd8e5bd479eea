package standin

var refusedFault = &fault{Fault: Fault{
	Kind: Refused,
	What: "no connection: the port is closed",
	Doc: `For the timeline alone: while the incident is on, the port is closed and connections are refused, as by a host whose service is
down. Connections that are open stay. It needs a server that was started by Start; no request, no exchange in the journal.`,
}}

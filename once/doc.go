// Package once makes side effects happen once: tickets, mails, payments, whatever must not be repeated because an answer was lost.
//
//	ledger := once.New(store, once.Options{}) // store: NewMemory, OpenSQLite or OpenPostgres
//	key := once.Key("ticket", tenant, order)
//	result, err := once.Do(ctx, ledger, key, once.Effect[Ticket]{
//		Run:     func(ctx context.Context, key string) (Ticket, error) { return desk.Open(ctx, key, note) },
//		Replays: true, // the desk honours Idempotency-Key
//	})
//
// [Do] starts an effect at most once at a time and records its outcome once; how close that comes to an effect that happens exactly
// once is for the far side to say. If the process dies, or the answer is lost,
//
//	                               the far side replays keys     it has a Lookup              neither
//	before the start is recorded   the next caller starts it     the same                     the same
//	after that, before the effect  started with the same key     started, on the word of      *UnknownError
//	                                                             the far side
//	after the effect               started with the same key,    its outcome is looked up     *UnknownError
//	                               which gives the first answer
//	after the outcome is recorded  the recorded outcome          the same                     the same
//
// The next caller waits until the lease of the dead one is over, a little more than [Effect.Limit]. An [*UnknownError] is what every
// caller gets until [Resolve] or [Ledger.Forget] settles the key; [Ledger.Doubtful] lists all such keys. A failure that certainly did
// nothing ([NothingHappened]) leaves no record.
//
// The package never repeats an effect in doubt unless the far side replays its key or says that nothing happened; it records no error
// text, and the keys that it makes say nothing of whose they are. Outcomes
// are recorded as they are: what must not be stored must not be returned by an effect.
package once

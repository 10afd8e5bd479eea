// Package batch works with message batches of the Claude API through faults: it makes a batch once, waits for it, and
// reads what became of each request.
//
//	batches := batch.Client{API: &client.Messages.Batches}
//	made, _, err := batches.Create(ctx, requests) // made.ID is worth keeping
//	ended, err := batches.Wait(ctx, made.ID)
//	for item, err := range batches.Results(ctx, ended, requests) {
//		report.Add(item)
//	}
//	again := report.Rerun() // errored for a reason that passes, canceled, expired
//
// A batch has no name that a client could give it, and the API does not recognize a repetition. What Create does when
//
//	the API names the batch ..................... returns it
//	429, or no connection was made .............. sends again, as the policy says
//	any other 4xx, but 408, 409 and 499 ......... returns the API's error: no batch was made
//	the reply is lost: a reset, a timeout,
//	  a 5xx, a 200 that cannot be read .......... searches the list for a batch of this time and number of requests
//	  one that has ended ........................ adopts it if its results have the same custom ids
//	  one alone, for ten seconds ................ adopts it (with Shared: *DoubtfulError)
//	  several ................................... *DoubtfulError with the candidates; Identify finds out
//	  none, or the list cannot be seen .......... *DoubtfulError (none, with Resend: sends once more)
//	the caller leaves meanwhile ................. *DoubtfulError
//	the Ledger has the id of these requests ..... returns that batch, and sends nothing
//	the Ledger has a record without an id ....... searches, as above
//
// The list tells times and counts alone; custom ids come with the results. So a batch that is adopted by its count is held
// against the requests once more by Results.
//
// Nothing here sends a batch again while one may exist, cancels or deletes one, logs anything, or puts what a request or a
// result says into an error.
package batch

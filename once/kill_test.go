package once_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/once"
)

// kills is how many processes the test below kills in all: with HOLDFAST_KILLS as many as that says.
func kills(t *testing.T) int {
	if text := os.Getenv("HOLDFAST_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			t.Fatalf("HOLDFAST_KILLS is %q", text)
		}
		return n
	}
	if testing.Short() {
		return 40
	}
	return 100
}

// Processes are killed at every point of Do, one after another, on both stores. Against a far side that honours keys, or can be asked,
// there are never two effects, and every job is done in the end, with one outcome. Against one that is neither, what is certain is
// done, and what is in doubt is reported: never repeated, never lost.
func TestKillAtEveryPoint(t *testing.T) {
	n := kills(t)
	for i, store := range []string{"SQLite", "Postgres"} {
		for j, side := range []string{"honours keys", "forgets keys", "can be asked"} {
			t.Run(store+", the far side "+side, func(t *testing.T) {
				t.Parallel()
				var address string
				if store == "SQLite" {
					address = filepath.Join(t.TempDir(), "effects.db")
				} else {
					address = postgresURL(t)
				}
				g := newGraveyard(t, store, address, j == 0, uint64(3*i+j+1))
				each := (n + 5) / 6
				g.Lookups, g.first = j == 2, i*each // one store goes on where the other one ends, if there are too few for all points
				for len(g.deaths) < each && !t.Failed() {
					g.oneLife(t)
				}
				g.judge(t)
			})
		}
	}
}

// graveyard kills one process after another, and knows what really happened.
type graveyard struct {
	life
	first  int // of the points
	dice   *rand.Rand
	deaths []death

	mu      sync.Mutex
	effects map[int][]string  // by job: what the far side did
	keys    map[string]string // by key: what it answers
	process *os.Process       // the living one
	over    chan struct{}     // closed when that is dead
	busy    int               // requests at the far side
	idle    *sync.Cond
	died    bool // by the far side's hand

	unknown map[int]bool // jobs that were reported as such
}

// death is a job during which a process was killed, and where.
type death struct {
	job   int
	point string
}

func newGraveyard(t *testing.T, store, address string, replays bool, seed uint64) *graveyard {
	g := &graveyard{
		life: life{Store: store, Address: address, Replays: replays}, dice: rand.New(rand.NewPCG(seed, 0)),
		effects: map[int][]string{}, keys: map[string]string{}, unknown: map[int]bool{},
	}
	g.idle = sync.NewCond(&g.mu)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.Desk = server.URL
	return g
}

// ServeHTTP is the far side. At its points it kills who asks.
func (g *graveyard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	job, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	defer func() {
		g.mu.Lock()
		g.busy--
		g.idle.Broadcast()
		g.mu.Unlock()
	}()
	g.mu.Lock()
	g.busy++
	point, dies := g.Point, job >= g.Armed && !g.died
	g.mu.Unlock()
	if r.Method == http.MethodGet {
		if dies && point == inLookup {
			g.kill()
		}
		io.WriteString(w, strings.Join(g.done(job), ", "))
		return
	}
	if dies && (point == arrived || point == late) {
		g.kill()
		if point == arrived {
			return
		}
	}
	if dies && (point == beforeFree || point == duringFree || point == afterFree) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := g.do(job, r.Header.Get("Idempotency-Key"))
	if dies && point == happened {
		g.kill()
		return
	}
	if dies && (point == beforeDoubt || point == duringDoubt || point == afterDoubt || point == inLookup) {
		w.WriteHeader(http.StatusBadGateway)
	}
	io.WriteString(w, id)
}

// do makes the effect happen, or gives the first answer to a key again.
func (g *graveyard) do(job int, key string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id := g.keys[key]; g.Replays && id != "" {
		return id
	}
	id := fmt.Sprintf("E%d.%d", job, len(g.effects[job]))
	g.effects[job], g.keys[key] = append(g.effects[job], id), id
	return id
}

// done is what the far side did for a job.
func (g *graveyard) done(job int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.effects[job])
}

// kill ends the living process, and returns when it is dead.
func (g *graveyard) kill() {
	g.mu.Lock()
	process, over := g.process, g.over
	g.died = true
	g.mu.Unlock()
	_ = process.Kill()
	<-over
}

// points are where processes die, for as long as there are any.
func (g *graveyard) points() []string {
	all := []string{
		beforeStart, duringStart, beforeEffect, arrived, late, happened, beforeOutcome, duringOutcome, afterOutcome,
		beforeDoubt, duringDoubt, afterDoubt, beforeFree, duringFree, afterFree,
	}
	if g.Lookups {
		all = append(all, inLookup)
	}
	return all
}

// oneLife starts a process and kills it.
func (g *graveyard) oneLife(t *testing.T) {
	g.mu.Lock()
	points := g.points()
	g.Point = points[(g.first+len(g.deaths))%len(points)]
	g.Armed = g.From + g.dice.IntN(2) // as often as not in the middle of mending what the last death left
	if g.Replays && strings.HasSuffix(g.Point, "freed") {
		g.Armed = g.From + 1 // a rejection does not free what the last death has left in doubt
	}
	g.To = g.Armed + 5
	g.Ahead += time.Hour
	config, _ := json.Marshal(g.life)
	g.mu.Unlock()
	cmd := process(t, string(config))
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock() // the far side may be asked before Start returns
	g.died, g.over = false, make(chan struct{})
	err = cmd.Start()
	g.process = cmd.Process
	g.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	asked := g.listen(t, said, cmd)
	_ = cmd.Wait() // killed
	g.mu.Lock()
	close(g.over)
	died := g.died || asked
	for g.busy > 0 { // what happens afterwards
		g.idle.Wait()
	}
	g.mu.Unlock()
	if !died {
		t.Fatalf("%s: nobody died after job %d", g.Point, g.From)
	}
	g.deaths = append(g.deaths, death{g.From, g.Point})
}

// process is this binary, to be started for a life.
func process(t *testing.T, config string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), lifeVariable+"="+config)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // open as long as this process lives
		t.Fatal(err)
	}
	return cmd
}

// listen reads what the process says it did, and kills it where it asks for that.
func (g *graveyard) listen(t *testing.T, said io.Reader, cmd *exec.Cmd) (asked bool) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		number, id, _ := strings.Cut(rest, " ")
		job, _ := strconv.Atoi(number)
		effects := g.done(job)
		switch verb {
		case "kill":
			for end := time.Now().Add(time.Duration(g.dice.IntN(1500)) * time.Microsecond); time.Now().Before(end) && strings.HasPrefix(g.Point, "while"); {
			}
			_ = cmd.Process.Kill()
			asked = true
			continue
		case "done":
			if !slices.Equal(effects, []string{id}) {
				t.Errorf("job %d is done as %s, the far side did %q", job, id, effects)
			}
		case "unknown":
			g.unknown[job] = true
		default:
			t.Errorf("the process says %q", lines.Text())
		}
		g.From = max(g.From, job+1)
	}
	return asked
}

// doubtful says whether a job that died there must, may or must not be in doubt, against a far side without keys, and how many
// effects there are then.
func doubtful(point string) (must, may bool, effects []int) {
	switch point {
	case beforeStart:
		return false, false, []int{1}
	case duringStart, duringFree: // a later process may have died at the same job
		return false, true, []int{0, 1}
	case beforeEffect, arrived, beforeFree:
		return true, true, []int{0}
	case late, happened, beforeOutcome, beforeDoubt, duringDoubt, afterDoubt:
		return true, true, []int{1}
	case duringOutcome:
		return false, true, []int{1}
	}
	return false, false, []int{1}
}

// judge runs what is left, and holds every job against what the far side knows.
func (g *graveyard) judge(t *testing.T) {
	ctx := context.Background()
	store, err := openFor(ctx, g.Store, g.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ledger := once.New(store, once.Options{Now: func() time.Time { return time.Now().Add(g.Ahead + time.Hour) }})
	g.mu.Lock()
	g.Point = "" // nobody dies any more
	g.mu.Unlock()
	client := &http.Client{Transport: &once.Transport{Base: &http.Transport{DisableKeepAlives: true}}}
	where := map[int]string{} // of the first death: a job in doubt reaches no further point
	for _, d := range g.deaths {
		if where[d.job] == "" || where[d.job] == beforeStart || where[d.job] == afterFree {
			where[d.job] = d.point
		}
	}
	mends := g.Replays || g.Lookups
	inDoubt := map[string]int{} // by key
	for job := range g.From + 1 {
		r, err := once.Do(ctx, ledger, jobKey(job), g.effect(client, job))
		effects := g.done(job)
		switch must, may, count := doubtful(where[job]); {
		case err == nil:
			if !slices.Equal(effects, []string{r.Value}) || g.unknown[job] || must && !mends {
				t.Errorf("job %d, killed %s: outcome %s, the far side did %q, reported as unknown: %v", job, where[job], r.Value, effects, g.unknown[job])
			}
		case mends || !may || !slices.Contains(count, len(effects)):
			t.Errorf("job %d, killed %s: %v; the far side did %q", job, where[job], err, effects)
		default:
			inDoubt[jobKey(job)] = job
		}
	}
	listed := 0
	for r, err := range ledger.Doubtful(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
		if _, known := inDoubt[r.Key]; !known {
			t.Errorf("%+v is listed as doubtful", r)
		}
	}
	if listed != len(inDoubt) {
		t.Errorf("%d of %d doubtful jobs are listed", listed, len(inDoubt))
	}
	// Somebody asks the far side about those in doubt, and settles them.
	for _, job := range inDoubt {
		if done := g.done(job); len(done) > 0 {
			err = once.Resolve(ctx, ledger, jobKey(job), done[0])
		} else {
			err = ledger.Forget(ctx, jobKey(job))
		}
		r, failed := once.Do(ctx, ledger, jobKey(job), g.effect(client, job))
		if err != nil || failed != nil || !slices.Equal(g.done(job), []string{r.Value}) {
			t.Errorf("job %d, settled: %+v, %v, %v; the far side did %q", job, r, err, failed, g.done(job))
		}
	}
	t.Logf("%d processes killed during %d jobs; %d jobs in doubt", len(g.deaths), len(where), len(inDoubt))
}

// Processes that live at the same time and come with the same keys: each effect happens once, and all of them learn its outcome.
func TestManyProcessesAtOnce(t *testing.T) {
	const jobs, processes = 20, 4
	for _, store := range []string{"SQLite", "Postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			address := filepath.Join(t.TempDir(), "effects.db")
			if store == "Postgres" {
				address = postgresURL(t)
			}
			g := newGraveyard(t, store, address, false, 0)
			all := g.life // without a point where it ends
			all.To = jobs
			config, _ := json.Marshal(all)
			var living sync.WaitGroup
			for range processes {
				living.Go(func() {
					said, err := process(t, string(config)).Output()
					if err != nil {
						t.Error(err)
						return
					}
					lines := strings.Split(strings.TrimSpace(string(said)), "\n")
					for job, line := range lines {
						if want := fmt.Sprintf("done %d E%d.0", job, job); line != want {
							t.Errorf("a process says %q, want %q", line, want)
						}
					}
					if len(lines) != jobs {
						t.Errorf("a process did %d jobs", len(lines))
					}
				})
			}
			living.Wait()
			for job := range jobs {
				if len(g.done(job)) != 1 {
					t.Errorf("job %d: %q", job, g.done(job))
				}
			}
		})
	}
}

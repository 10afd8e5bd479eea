package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"holdfast/config"
	"holdfast/standin"
)

// What is in deploy/ is held against the program and against the tools that read it, where this machine has them.

const deployFolder = "../../deploy"

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// deployedConfig loads a configuration. The keys that it reads from files are put there.
func deployedConfig(t *testing.T, name string) *config.File {
	t.Helper()
	folder := t.TempDir()
	key := filepath.Join(folder, "key")
	if err := os.WriteFile(key, []byte("sk-example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\$\{file:[^}]*\}`).ReplaceAllLiteralString(deployed(t, name), "${file:"+filepath.ToSlash(key)+"}")
	path := filepath.Join(folder, "holdfast.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(path)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return file
}

func TestDeployedConfigurationsAreGood(t *testing.T) {
	for _, row := range []struct {
		name, listen string
		grace        time.Duration
		clients      int
	}{
		{"systemd/holdfast.yaml", "127.0.0.1:4100", 5 * time.Minute, 0},
		{"docker/holdfast.yaml", "0.0.0.0:4100", 30 * time.Second, 1},
		{"kubernetes/holdfast.yaml", "0.0.0.0:4100", 5 * time.Minute, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := deployedConfig(t, row.name)
			if file.ListenAddress() != row.listen || file.Grace() != row.grace || len(file.Clients) != row.clients {
				t.Errorf("listen %s, grace %v, %d clients", file.ListenAddress(), file.Grace(), len(file.Clients))
			}
			settings, err := file.Gateway()
			if err != nil || len(settings.Targets) == 0 || len(settings.Targets[0].Keys) != 1 {
				t.Errorf("%v, targets %d", err, len(settings.Targets))
			}
		})
	}
	if _, err := standin.ParsePlan([]byte(deployed(t, "docker/plan.yaml"))); err != nil {
		t.Error(err)
	}
}

// setting is the value of a key of the unit.
func setting(t *testing.T, unit, key string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
	if found == nil {
		t.Fatalf("the unit has no %s", key)
	}
	return found[1]
}

func TestUnitGivesTheDrainItsTime(t *testing.T) {
	unit := deployed(t, "systemd/holdfast.service")
	grace := deployedConfig(t, "systemd/holdfast.yaml").Grace()
	stop, err := time.ParseDuration(setting(t, unit, "TimeoutStopSec"))
	if err != nil || stop < grace+10*time.Second {
		t.Errorf("TimeoutStopSec is %v, %v; the grace is %v", stop, err, grace)
	}
	if code := setting(t, unit, "RestartPreventExitStatus"); code != strconv.Itoa(exitUsage) {
		t.Errorf("RestartPreventExitStatus is %s", code)
	}
	name, _, _ := strings.Cut(setting(t, unit, "LoadCredential"), ":")
	if want := "${file:/run/credentials/holdfast.service/" + name + "}"; !strings.Contains(deployed(t, "systemd/holdfast.yaml"), want) {
		t.Errorf("the configuration does not read %s", want)
	}
}

func TestUnitIsGoodForSystemd(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	self, err := os.Executable() // the unit's own program is not installed here
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "holdfast.service")
	text := strings.ReplaceAll(deployed(t, "systemd/holdfast.service"), "/usr/local/bin/holdfast", self)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// Exposure goes from 0 to 10; 1.2 is what remains for a service that has to reach the network.
	out, err := exec.CommandContext(t.Context(), tool, "security", "--offline=true", "--threshold=15", unit).CombinedOutput()
	if err != nil && strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd-analyze does not look at files")
	}
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}

// manifest is what the tests look at in a manifest.
type manifest struct {
	Kind     string                `json:"kind"`
	Metadata struct{ Name string } `json:"metadata"`
	Data     map[string]string     `json:"data"`
	Spec     struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec pod `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type pod struct {
	TerminationGracePeriodSeconds int `json:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot bool `json:"runAsNonRoot"`
	} `json:"securityContext"`
	Containers []struct {
		Args  []string `json:"args"`
		Ports []struct {
			Name          string `json:"name"`
			ContainerPort int    `json:"containerPort"`
		} `json:"ports"`
		SecurityContext struct {
			ReadOnlyRootFilesystem   bool  `json:"readOnlyRootFilesystem"`
			AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation"`
		} `json:"securityContext"`
		ReadinessProbe, LivenessProbe probe
		Lifecycle                     struct {
			PreStop struct {
				Sleep struct{ Seconds int } `json:"sleep"`
			} `json:"preStop"`
		} `json:"lifecycle"`
	} `json:"containers"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `json:"httpGet"`
}

// decode reads YAML into what is made for JSON.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(asJSON, into)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func TestPodHasTimeAndNoRights(t *testing.T) {
	var m manifest
	decode(t, deployed(t, "kubernetes/deployment.yaml"), &m)
	p := m.Spec.Template.Spec
	if len(p.Containers) != 1 {
		t.Fatalf("%d containers", len(p.Containers))
	}
	c, grace := p.Containers[0], deployedConfig(t, "kubernetes/holdfast.yaml").Grace()
	all := time.Duration(p.TerminationGracePeriodSeconds) * time.Second
	if least := grace + time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second; c.Lifecycle.PreStop.Sleep.Seconds < 5 || all < least+10*time.Second {
		t.Errorf("terminationGracePeriodSeconds is %v, preStop and grace together are %v", all, least)
	}
	if s := c.SecurityContext; !p.SecurityContext.RunAsNonRoot || !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("the pod has rights it does not need: %+v %+v", p.SecurityContext, s)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.ReadinessProbe.HTTPGet.Port != "admin" {
		t.Errorf("probes %+v %+v", c.LivenessProbe, c.ReadinessProbe)
	}
	if got := strings.Join(c.Args, " "); got != "serve --config /etc/holdfast/holdfast.yaml" {
		t.Errorf("args %q", got)
	}
}

func TestManifestsBelongTogether(t *testing.T) {
	tool, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl here")
	}
	out, err := exec.CommandContext(t.Context(), tool, "kustomize", filepath.Join(deployFolder, "kubernetes")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kinds := map[string]int{}
	for text := range strings.SplitSeq(string(out), "\n---\n") {
		var m manifest
		decode(t, text, &m)
		kinds[m.Kind]++
		switch m.Kind {
		case "ConfigMap":
			if m.Data["holdfast.yaml"] != deployed(t, "kubernetes/holdfast.yaml") || !regexp.MustCompile(`^holdfast-config-[a-z0-9]+$`).MatchString(m.Metadata.Name) {
				t.Errorf("ConfigMap %s", m.Metadata.Name)
			}
		case "Deployment", "PodDisruptionBudget":
			if m.Spec.Selector.MatchLabels["app.kubernetes.io/name"] != "holdfast" {
				t.Errorf("%s selects %v", m.Kind, m.Spec.Selector.MatchLabels)
			}
		}
	}
	if len(kinds) != 4 || kinds["Service"] != 1 || kinds["ConfigMap"] != 1 {
		t.Errorf("manifests %v", kinds)
	}
	dry := exec.CommandContext(t.Context(), tool, "apply", "--dry-run=client", "-k", filepath.Join(deployFolder, "kubernetes"))
	if out, err := dry.CombinedOutput(); err != nil {
		if regexp.MustCompile(`connection refused|failed to download openapi|no configuration|Unable to connect`).Match(out) {
			t.Skip("kubectl apply needs a cluster to ask what it knows")
		}
		t.Errorf("apply: %v\n%s", err, out)
	}
}

func TestComposeRunsWhatExists(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image           string
			Command         []string
			Volumes         []string
			Environment     map[string]string
			StopGracePeriod string `json:"stop_grace_period"`
		}
	}
	decode(t, deployed(t, "docker/compose.yaml"), &file)
	conf := deployedConfig(t, "docker/holdfast.yaml")
	for name, s := range file.Services {
		cmd, _, err := newRootCommand().Find(s.Command)
		if err != nil || s.Image != "holdfast" {
			t.Errorf("%s: %v, image %s", name, err, s.Image)
			continue
		}
		if err := cmd.ParseFlags(s.Command[1:]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "./") {
				deployed(t, "docker/"+from[2:])
			}
		}
	}
	if stop, err := time.ParseDuration(file.Services["gateway"].StopGracePeriod); err != nil || stop <= conf.Grace() {
		t.Errorf("stop_grace_period is %v, %v", stop, err)
	}
	if key := file.Services["call"].Environment["ANTHROPIC_API_KEY"]; hashOfKey(key) != conf.Clients[0].KeySHA256 {
		t.Errorf("the hash of the client's key is %s, the configuration has %s", hashOfKey(key), conf.Clients[0].KeySHA256)
	}
	tool, err := exec.LookPath("docker")
	if err != nil || exec.CommandContext(t.Context(), tool, "compose", "version").Run() != nil {
		t.Skip("no docker compose here")
	}
	if out, err := exec.CommandContext(t.Context(), tool, "compose", "-f", filepath.Join(deployFolder, "docker", "compose.yaml"), "config", "-q").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The image is built by what go.mod asks for, and holds the configuration where the command looks for it.
func TestDockerfileFitsTheModule(t *testing.T) {
	text := deployed(t, "docker/Dockerfile")
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(gomod)
	if !strings.Contains(text, "golang:"+string(version[1])+"-") {
		t.Errorf("the image to build with is not that of go %s", version[1])
	}
	for _, line := range []string{"USER 65532:65532", "STOPSIGNAL SIGTERM", `CMD ["serve", "--config", "/etc/holdfast/holdfast.yaml"]`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the Dockerfile has no line %q", line)
		}
	}
}

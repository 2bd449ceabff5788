package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

// limit bounds most tests, and waits in them. A control plane starts within seconds, but takes longer under load.
const limit = 4 * time.Minute

// commandVariable makes the test binary run one command on a control plane. It contains a verb such as up and, unless
// the verb makes a folder itself, the folder, each on its own line.
const commandVariable = "CONTROLPLANE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if command := os.Getenv(commandVariable); command != "" {
		verb, dir, _ := strings.Cut(command, "\n")
		if err := obey(context.Background(), verb, dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func obey(ctx context.Context, verb, dir string) error {
	if verb == "start" {
		plane, err := controlplane.Start(ctx, controlplane.Options{})
		if err != nil {
			return err
		}
		fmt.Println(plane.Dir())
		select {} // until it is killed
	}
	if verb == "scratch" {
		folder, _, err := controlplane.Scratch()
		if err != nil {
			return err
		}
		fmt.Println(folder)
		<-time.After(limit) // it is killed before then; without a timer, Go would report a deadlock
	}
	plane, err := controlplane.Open(dir, controlplane.Options{Out: os.Stdout})
	if err != nil {
		return err
	}
	return map[string]func(context.Context) error{
		"up": plane.Up, "down": plane.Down, "remove": plane.Remove, "reset": plane.Reset, "renew": plane.RenewCertificates,
	}[verb](ctx)
}

// open returns a control plane that is removed when the test ends, and the buffer for its output.
func open(t *testing.T, dir string, options controlplane.Options) (*controlplane.ControlPlane, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	options.Out = out
	plane, err := controlplane.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := plane.Remove(ctx); err != nil {
			t.Errorf("remove the control plane: %v", err)
		}
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return plane, out
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// pids returns the process IDs of the running components, by name.
func pids(ctx context.Context, g Gomega, plane *controlplane.ControlPlane) map[string]int {
	status, err := plane.Status(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]int{}
	for _, component := range status.Components {
		if component.PID != 0 {
			found[component.Name] = component.PID
		}
	}
	return found
}

func clientOf(g Gomega, plane *controlplane.ControlPlane) kubernetes.Interface {
	config, err := install.Config(plane)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

func clientFrom(g Gomega, kubeconfig []byte) kubernetes.Interface {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

// keep creates an object, and kept reports whether it exists.
func keep(ctx context.Context, g Gomega, plane *controlplane.ControlPlane) {
	_, err := clientOf(g, plane).CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	g.Expect(err).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsAlreadyExists)))
}

func kept(ctx context.Context, g Gomega, plane *controlplane.ControlPlane) bool {
	_, err := clientOf(g, plane).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
	g.Expect(err).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsNotFound)))
	return err == nil
}

// revision returns etcd's current revision.
func revision(ctx context.Context, g Gomega, plane *controlplane.ControlPlane) int {
	list, err := clientOf(g, plane).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	found, err := strconv.Atoi(list.ResourceVersion)
	g.Expect(err).NotTo(HaveOccurred())
	return found
}

// below lists the names of the running programs whose arguments mention a folder.
func below(g Gomega, folder string) []string {
	found := []string{}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range commands {
		content, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(content), folder) {
			continue // it has ended, or doesn't mention the folder
		}
		program, _, _ := strings.Cut(string(content), "\x00")
		found = append(found, filepath.Base(program))
	}
	return found
}

func stop(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func kill(g Gomega, pid int) {
	g.Expect(pid).To(BeNumerically(">", 1))
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
}

// killAt runs a command in a process of its own, and kills the process with SIGKILL when moment returns true. If
// moment never does, the command runs to its end.
func killAt(ctx context.Context, t *testing.T, verb, dir string, moment func() bool) {
	t.Helper()
	g := NewWithT(t)
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), commandVariable+"="+verb+"\n"+dir)
	output := &bytes.Buffer{}
	command.Stdout = output
	g.Expect(command.Start()).To(Succeed())
	ended := make(chan struct{})
	var status error
	go func() {
		defer close(ended)
		status = command.Wait()
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !moment() {
		select {
		case <-ended:
			t.Logf("%s exited before it could be killed: %v\n%s", verb, status, output.String())
			return
		case <-ticker.C:
		}
	}
	g.Expect(command.Process.Kill()).To(Or(Succeed(), MatchError(os.ErrProcessDone)))
	<-ended
}

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return !errors.Is(err, os.ErrNotExist)
}

package classroom

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"example.com/operator-workshop/internal/kube"
)

// answerLimit bounds one readiness check of an API server, or all requests for one status together.
const answerLimit = 5 * time.Second

// describe queries the API server and fills in the status. It uses the certificates in the cluster's kubeconfig.
func describe(ctx context.Context, status *Status, options Options) {
	client, err := kube.Open(status.Kubeconfig)
	if err != nil {
		status.State, status.Detail = StateBroken, fmt.Sprintf("%v: `%s` writes the kubeconfig again", err, options.MakeCommand("up"))
		return
	}
	describeServer(ctx, status, client.Server, client.Get)
}

// describeServer queries the API server with get, and fills in the status. If it can't read the server's version, the
// state is StateBroken.
func describeServer(ctx context.Context, status *Status, server string, get kube.Get) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var version struct{ GitVersion string }
	if err := get.JSON(limited, "/version", &version); err != nil {
		status.State, status.Detail = StateBroken, err.Error()
		return
	}
	status.Version, status.Server = version.GitVersion, server
	var nodes struct {
		Items []struct {
			Status struct{ Conditions []condition }
		}
	}
	if err := get.JSON(limited, "/api/v1/nodes", &nodes); err != nil {
		status.Detail = err.Error()
		return
	}
	status.Nodes = len(nodes.Items)
	for _, node := range nodes.Items {
		if isReady(node.Status.Conditions) {
			status.ReadyNodes++
		}
	}
}

// condition is an entry in a node's status.conditions.
type condition struct{ Type, Status string }

func isReady(conditions []condition) bool {
	return slices.Contains(conditions, condition{Type: "Ready", Status: "True"})
}

// Print writes the status in human-readable form.
func (s Status) Print(out io.Writer, now time.Time) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	defer table.Flush()
	fmt.Fprintf(table, "cluster\t%s (%s): %s\n", s.Name, s.Provider, s.State)
	if s.Detail != "" {
		fmt.Fprintf(table, "note\t%s\n", s.Detail)
	}
	if s.Server != "" {
		fmt.Fprintf(table, "server\t%s, Kubernetes %s\n", s.Server, s.Version)
		fmt.Fprintf(table, "nodes\t%d, %d of them ready\n", s.Nodes, s.ReadyNodes)
	}
	if s.Kubeconfig != "" {
		fmt.Fprintf(table, "kubeconfig\t%s\n", s.Kubeconfig)
	}
	if len(s.Components) == 0 {
		return
	}
	fmt.Fprintf(table, "memory\t%s\n", megabytes(s.Memory()))
	fmt.Fprintln(table, "\nCOMPONENT\tPID\tMEMORY\tRUNNING FOR")
	for _, component := range s.Components {
		if component.PID == 0 {
			fmt.Fprintf(table, "%s\t-\t-\tnot running\n", component.Name)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", component.Name, component.PID, megabytes(component.Memory), now.Sub(component.Started).Round(time.Second))
	}
}

func megabytes(bytes uint64) string { return fmt.Sprintf("%d MB", bytes/1e6) }

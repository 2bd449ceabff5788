package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Ports are chosen below the range that operating systems use for the local ends
// of outgoing connections (from 32768 on Linux, 49152 on macOS). Otherwise such a
// connection could take a port after it has been found free.
const (
	lowestPort  = 20000
	highestPort = 32767
)

// releaseTimeout is how long a port may take to become free after its program has ended.
const releaseTimeout = time.Second

// ErrPortTaken says that another program is listening on the API server's port.
var ErrPortTaken = errors.New("is taken by another program")

// FreePort returns a random loopback port that is free now. No outgoing connection will take it, but another server might.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts chooses n different free loopback ports at random.
func freePorts(n int) ([]int, error) {
	var ports []int
	taken := map[int]bool{}
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if !taken[port] && portFree(port) {
			taken[port] = true
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("found only %d of the %d free ports that are needed, on %s between %d and %d: end programs that hold many ports", len(ports), n, loopback, lowestPort, highestPort)
}

// portFree reports whether the port is free both on the loopback address and on all addresses.
func portFree(port int) bool { return listen(port) == nil }

// listen returns an error unless this process can listen on the port, both on the loopback address and on all
// addresses.
func listen(port int) error {
	for _, host := range []string{loopback, ""} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		_ = listener.Close()
	}
	return nil
}

// choosePorts chooses the ports of a new control plane. apiServer is the API server's port, or 0 for a free one.
func choosePorts(apiServer int) (ports, error) {
	free, err := freePorts(5)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{APIServer: free[0], Etcd: free[1], EtcdPeer: free[2], ControllerManager: free[3], Scheduler: free[4]}
	if apiServer == 0 {
		return chosen, nil
	}
	chosen.APIServer = apiServer
	return chosen, CheckPort(apiServer)
}

// CheckPort returns an error if the API server can't have the port: ErrPortTaken if another program is listening there,
// and otherwise an error with the reason, for example that this user may not listen there.
func CheckPort(port int) error { return explainPort(port, listen(port)) }

// explainPort turns an error from listen into one that names the port and, for common causes, says what to do.
func explainPort(port int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d (kube-apiserver) %w: end that program, or choose another port", port, ErrPortTaken)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("your user may not listen on port %d (kube-apiserver): choose a port above 1023", port)
	}
	return fmt.Errorf("listen on port %d (kube-apiserver): %w", port, err)
}

// keepPorts makes sure that components that aren't running can listen on their ports, and chooses other ports if it must,
// for instance after a reboot or in a copied folder. It never changes a port that the caller chose for the API server.
func (c *ControlPlane) keepPorts(ctx context.Context, r record) (record, error) {
	fresh, err := freePorts(5)
	if err != nil {
		return record{}, err
	}
	for _, component := range Components {
		if pid, _, err := c.process(component).await(ctx); err != nil {
			return record{}, err
		} else if pid != 0 {
			continue
		}
		taken := false
		for _, port := range r.Ports.of(component) {
			waitErr := poll(ctx, releaseTimeout, lockPoll, func(context.Context) bool { return portFree(port) })
			if ctx.Err() != nil {
				return record{}, context.Cause(ctx)
			}
			taken = taken || waitErr != nil
		}
		if !taken {
			continue
		}
		switch component {
		case "etcd":
			r.Ports.Etcd, r.Ports.EtcdPeer = fresh[0], fresh[1]
		case "kube-apiserver":
			if c.options.Port != 0 {
				if err := CheckPort(c.options.Port); err != nil {
					return record{}, err
				}
				continue // it is free now
			}
			c.say("Port %d of the API server %v: the API server gets port %d.", r.Ports.APIServer, ErrPortTaken, fresh[2])
			r.Ports.APIServer = fresh[2]
		case "kube-controller-manager":
			r.Ports.ControllerManager = fresh[3]
		case "kube-scheduler":
			r.Ports.Scheduler = fresh[4]
		}
	}
	return r, nil
}

// makeRoom stops components that must be replaced, and finds ports for those that must be started.
func (c *ControlPlane) makeRoom(ctx context.Context, r record) (record, error) {
	if err := c.endWrong(ctx, r); err != nil {
		return record{}, err
	}
	kept, err := c.keepPorts(ctx, r)
	if err != nil || kept.Ports == r.Ports {
		return r, err
	}
	if err := errors.Join(c.save(kept), c.writeKubeconfigs(kept)); err != nil {
		return record{}, err
	}
	// Components that are running still use the old ports.
	return kept, c.endWrong(ctx, kept)
}

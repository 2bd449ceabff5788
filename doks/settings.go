package doks

import "slices"

// copy returns settings that share no memory with the original, so that a request's body can be decoded into the copy,
// and a view can be read without the lock. Decoding JSON would otherwise change the original: it overwrites existing
// lists, and what pointers point to, in place.
func (s settings) copy() settings {
	s.MaintenancePolicy = clone(s.MaintenancePolicy)
	if s.ControlPlaneFirewall = clone(s.ControlPlaneFirewall); s.ControlPlaneFirewall != nil {
		s.ControlPlaneFirewall.AllowedAddresses = slices.Clone(s.ControlPlaneFirewall.AllowedAddresses)
	}
	if s.Autoscaler = clone(s.Autoscaler); s.Autoscaler != nil {
		s.Autoscaler.Threshold, s.Autoscaler.UnneededTime = clone(s.Autoscaler.Threshold), clone(s.Autoscaler.UnneededTime)
		s.Autoscaler.Expanders = slices.Clone(s.Autoscaler.Expanders)
	}
	s.SSO = clone(s.SSO)
	for _, each := range s.features() {
		*each = clone(*each)
	}
	return s
}

func (s *settings) features() []**feature {
	return []**feature{
		&s.RoutingAgent, &s.AMDDevicePlugin, &s.AMDMetricsExporter, &s.NvidiaDevicePlugin,
		&s.RDMASharedDevice, &s.CoreDNSAutoscaler, &s.PeerToPeerRegistry,
	}
}

func clone[T any](original *T) *T {
	if original == nil {
		return nil
	}
	fresh := *original
	return &fresh
}

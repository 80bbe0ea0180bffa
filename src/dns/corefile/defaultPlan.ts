/** What a cluster without a Corefile has (L3): what kubeadm's Corefile asks for. Pure; what reads a Corefile is not loaded for it. */
import type { ServerPlan } from './plan.ts'

const reverseZones = ['in-addr.arpa', 'ip6.arpa']
const capacity = 9984

export function defaultPlan(zone: string): ServerPlan {
  const kept = { capacity, maxTtl: 30, minTtl: 5, disabled: [zone] }
  return {
    zones: [''],
    logged: [],
    balances: true,
    cache: { zones: [''], success: kept, denial: kept },
    rewrites: [],
    kubernetes: { ttl: 30, fallthrough: reverseZones },
    forwards: [{ servers: undefined, zone: '', maxConcurrent: 1000 }],
  }
}

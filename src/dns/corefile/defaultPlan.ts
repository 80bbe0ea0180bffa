/** What a cluster without a Corefile has (L3): what kubeadm's Corefile asks for. Pure; what reads a Corefile is not loaded for it. */
import { defaultCapacity, defaultMinTtl } from '../plugins/cache.ts'
import { reverseZones } from '../plugins/plugin.ts'
import type { ServerPlan } from './plan.ts'

export function defaultPlan(zone: string): ServerPlan {
  const kept = { capacity: defaultCapacity, maxTtl: 30, minTtl: defaultMinTtl, disabled: [zone] }
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

/** Taints of devices (L1). Upstream: dynamic-resource-allocation/resourceclaim ToleratesTaint (v1.36). */
import type { DeviceTaint, DeviceToleration } from '../gen/types/resource.v1.ts'
import type { Frozen } from '../machinery/meta.ts'

/** The caller decides whether the taint's effect matters. */
export function deviceTolerationToleratesTaint({ effect, key, operator = 'Equal', value = '' }: Frozen<DeviceToleration>, taint: Frozen<DeviceTaint>): boolean {
  if (effect && effect !== taint.effect) return false
  if (key && key !== taint.key) return false
  return operator === 'Exists' || (operator === 'Equal' && value === (taint.value ?? ''))
}

/** Taints of devices (L1). Upstream: dynamic-resource-allocation/resourceclaim ToleratesTaint (v1.36). */
import type { DeviceTaint, DeviceToleration } from '../gen/types/resource.v1.ts'
import type { Frozen } from '../machinery/meta.ts'

/** Whether the effect is one that anybody reacts to is the caller's question. */
export function deviceTolerationToleratesTaint({ effect, key, operator = 'Equal', value = '' }: Frozen<DeviceToleration>, taint: Frozen<DeviceTaint>): boolean {
  if (effect && effect !== taint.effect) return false
  if (key && key !== taint.key) return false
  return operator === 'Exists' || (operator === 'Equal' && value === (taint.value ?? ''))
}

/**
 * componentstatuses (L3): deprecated since v1.19, still listed by `kubectl get cs`. Each request probes the store and the components, all at once. The
 * composition root supplies the probes of the components.
 * Upstream: pkg/registry/core/componentstatus (rest.go, validator.go).
 */

import type { ComponentStatus } from '#api/gen/types/core.v1'
import { notFound } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { orAborted } from '#base/orAborted'
import type { ComputedResource } from '../core/computedResource.ts'

export interface ComponentHealth {
  /** Upstream's probe.Success, probe.Failure and probe.Unknown. */
  readonly status: 'True' | 'False' | 'Unknown'
  readonly message: string
  readonly error?: string | undefined
}

export const healthy: ComponentHealth = { status: 'True', message: 'ok' }

export interface ComponentProbe {
  readonly name: string
  /** What it throws is the error of an unhealthy component. */
  probe(signal: AbortSignal): Promise<ComponentHealth> | ComponentHealth
}

const probeTimeoutMs = 20_000

export function componentStatuses(probes: readonly ComponentProbe[], clock: Clock): ComputedResource {
  const byName = new Map(probes.map((one) => [one.name, one]))
  const statusOf = async (one: ComponentProbe, signal: AbortSignal) => {
    using limit = deadlineScope({ clock, ms: probeTimeoutMs }, signal)
    return componentStatus(one.name, await probed(one, limit.signal))
  }
  const resource: ComputedResource<ComponentStatus> = {
    group: '',
    version: 'v1',
    resource: 'componentstatuses',
    get({ name, signal }) {
      const one = byName.get(name)
      if (!one) throw notFound({ group: '', resource: 'componentstatus' }, name)
      return statusOf(one, signal)
    },
    list: ({ signal, selects }) => {
      const selected = [...byName.keys()].filter((name) => selects({ name })).sort()
      return Promise.all(selected.map((name) => statusOf(byName.get(name) as ComponentProbe, signal)))
    },
  }
  return resource as unknown as ComputedResource
}

/** Ends with the signal, even if the probe does not. */
async function probed(one: ComponentProbe, signal: AbortSignal): Promise<ComponentHealth> {
  try {
    return await orAborted(Promise.resolve(one.probe(signal)), signal)
  } catch (error) {
    return { status: 'False', message: '', error: messageOf(error) }
  }
}

function componentStatus(name: string, { status, message, error }: ComponentHealth): ComponentStatus {
  const condition = { type: 'Healthy', status, ...(message === '' ? {} : { message }), ...(error ? { error } : {}) }
  return { kind: 'ComponentStatus', apiVersion: 'v1', metadata: { name }, conditions: [condition] }
}

/**
 * A simulated DRA driver for nodes of a test cluster: publishes the devices of a node as the driver's plugin there would, and reports on the devices of
 * claims, as drivers do that attach devices before a pod may come.
 */
import type { Device, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { resourceClaims, resourceSlices } from '#client/builtIn'
import type { Client } from '#client/client'

export class SimulatedDraDriver {
  readonly #client: Client
  readonly name: string

  constructor(client: Client, name: string) {
    this.#client = client
    this.name = name
  }

  /** Replaces the node's pool of devices with one of the next generation. */
  async publish(nodeName: string, devices: readonly Device[]): Promise<void> {
    const slices = this.#client.of(resourceSlices)
    const name = `${nodeName}-${this.name}`
    const { items } = await slices.list()
    const old = items.find(({ metadata }) => metadata.name === name)
    const pool = { name: nodeName, generation: (old?.spec.pool.generation ?? 0) + 1, resourceSliceCount: 1 }
    const spec: ResourceSlice['spec'] = { driver: this.name, nodeName, pool, devices: [...devices] }
    if (old) await slices.update({ ...old, spec })
    else await slices.create({ metadata: { name }, spec })
  }

  /** Sets a condition on each of the driver's devices of an allocated claim. */
  async report(namespace: string, name: string, type: string, status: 'True' | 'False', at: string): Promise<void> {
    const claims = this.#client.of(resourceClaims)
    const claim = await claims.get({ namespace, name })
    const results = (claim.status?.allocation?.devices?.results ?? []).filter(({ driver }) => driver === this.name)
    const condition = { type, status, reason: 'Simulated', message: 'as the test says', lastTransitionTime: at }
    const devices = results.map(({ driver, pool, device }) => ({ driver, pool, device, conditions: [condition] }))
    await claims.updateStatus({ ...claim, status: { ...(claim.status as ResourceClaim['status']), devices } } as typeof claim)
  }
}

/** The pod sandboxes of a simulated runtime (L3): each an address and a name for its containers. */
import { formatIp, networkAddress, parseCidr } from '#api/machinery/ip'
import type { PodSandboxes } from '../../core/runtimeService.ts'
import { removeContainer } from './containers.ts'
import { finish, forget, idsOf, nanoseconds, newId, publish, remember, type State } from './state.ts'

function nextAddress(addresses: State['addresses']): string {
  const block = parseCidr(addresses.cidr)
  if (!block) throw new Error(`${addresses.cidr} is not a range of addresses`)
  const { family, value } = networkAddress(block)
  // A range of IPv6 has more addresses than a number can count.
  const size = 2 ** Math.min(31, (family === 4 ? 32 : 128) - block.prefixLength)
  // The first address names the range, the second is a gateway's, the last is the broadcast's.
  addresses.next = addresses.next >= size - 2 ? 2 : addresses.next + 1
  return formatIp({ family, value: value + BigInt(addresses.next) })
}

export function sandboxCalls(state: State): PodSandboxes {
  return {
    runPodSandbox: async (config, runtimeHandler, context) => {
      await state.clock.sleep(state.profile.sandboxDelayMs, context?.signal)
      const id = newId(state.random)
      const hostNetwork = config.linux.securityContext.namespaceOptions.network === 'NODE'
      state.sandboxes.set(id, {
        config,
        status: {
          id,
          metadata: config.metadata,
          state: 'SANDBOX_READY',
          createdAt: nanoseconds(state.clock.now()),
          labels: config.labels,
          annotations: config.annotations,
          runtimeHandler,
          network: hostNetwork ? { ip: '', additionalIps: [] } : { ip: nextAddress(state.addresses), additionalIps: [] },
        },
      })
      remember(state, config.metadata.uid, id)
      publish(state, id)
      return id
    },
    stopPodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const container of state.containers.values()) if (container.sandbox === sandbox) finish(state, container, 137, 'Error')
      sandbox.status = { ...sandbox.status, state: 'SANDBOX_NOTREADY', network: null }
      publish(state, id)
    },
    removePodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const [containerId, container] of state.containers) if (container.sandbox === sandbox) removeContainer(state, containerId)
      state.sandboxes.delete(id)
      for (const key of state.failedPulls.keys()) if (key.startsWith(`${sandbox.config.metadata.uid} `)) state.failedPulls.delete(key)
      forget(state, sandbox.config.metadata.uid, id)
      publish(state, id)
    },
    podSandboxStatus: async (id) => state.sandboxes.get(id)?.status,
    listPodSandbox: async (uid) => [...idsOf(state, uid, state.sandboxes.keys())].flatMap((id) => state.sandboxes.get(id)?.status ?? []),
  }
}

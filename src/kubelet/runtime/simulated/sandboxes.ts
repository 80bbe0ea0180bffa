/** The pod sandboxes of a simulated runtime (L3): each an address and a name for its containers. */
import { formatIp, networkAddress, parseCidr } from '#api/machinery/ip'
import type { PodSandboxes } from '../../core/runtimeService.ts'
import { removeContainer } from './containers.ts'
import type { SandboxFacts } from './facts.ts'
import { type Addresses, finish, forget, idsOf, nanoseconds, newId, publish, remember, type Sandbox, type State } from './state.ts'

function nextAddress(addresses: Addresses): string {
  const block = parseCidr(addresses.cidr)
  if (!block) throw new Error(`${addresses.cidr} is not a range of addresses`)
  const { family, value } = networkAddress(block)
  // A range of IPv6 has more addresses than a number can count.
  const size = 2 ** Math.min(31, (family === 4 ? 32 : 128) - block.prefixLength)
  // When all are used, the next one is used twice.
  for (let tried = 0; ; tried++) {
    // The first address names the range, the second is a gateway's, the last is the broadcast's.
    addresses.next = addresses.next >= size - 2 ? 2 : addresses.next + 1
    const text = formatIp({ family, value: value + BigInt(addresses.next) })
    if (!addresses.used.has(text) || tried >= addresses.used.size) return text
  }
}

/** A ready sandbox with that address; with none on the network of the node. */
export function addSandbox(
  state: State,
  config: SandboxFacts,
  { id, runtimeHandler, createdAt, ips }: { readonly id: string; readonly runtimeHandler: string; readonly createdAt: number; readonly ips: readonly string[] },
): Sandbox {
  const { metadata, labels, annotations } = config
  const [ip = '', ...additional] = ips
  for (const one of ips) state.addresses.used.add(one)
  const network = { ip, additionalIps: additional.map((one) => ({ ip: one })) }
  const sandbox: Sandbox = { config, status: { id, metadata, state: 'SANDBOX_READY', createdAt, labels, annotations, runtimeHandler, network } }
  state.sandboxes.set(id, sandbox)
  remember(state, metadata.uid, id)
  return sandbox
}

/** Its address is free again. */
export function setNotReady({ addresses }: State, sandbox: Sandbox): void {
  const { network } = sandbox.status
  for (const ip of network ? [network.ip, ...network.additionalIps.map((one) => one.ip)] : []) addresses.used.delete(ip)
  sandbox.status = { ...sandbox.status, state: 'SANDBOX_NOTREADY', network: null }
}

/** The calls of CRI about sandboxes. */
export function sandboxCalls(state: State): PodSandboxes {
  return {
    runPodSandbox: async (config, runtimeHandler, context) => {
      await state.clock.sleep(state.profile.sandboxDelayMs, context?.signal)
      const id = newId(state.random)
      const { metadata, labels, annotations, logDirectory } = config
      const ips = config.linux.securityContext.namespaceOptions.network === 'NODE' ? [] : [nextAddress(state.addresses)]
      addSandbox(state, { metadata, labels, annotations, logDirectory }, { id, runtimeHandler, createdAt: nanoseconds(state.clock.now()), ips })
      publish(state, id)
      return id
    },
    stopPodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const container of state.containers.values()) if (container.sandbox === sandbox) finish(state, container, 137, 'Error')
      setNotReady(state, sandbox)
      publish(state, id)
    },
    removePodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const [containerId, container] of state.containers) if (container.sandbox === sandbox) removeContainer(state, containerId)
      setNotReady(state, sandbox)
      state.sandboxes.delete(id)
      for (const key of state.failedPulls.keys()) if (key.startsWith(`${sandbox.config.metadata.uid} `)) state.failedPulls.delete(key)
      forget(state, sandbox.config.metadata.uid, id)
      publish(state, id)
    },
    podSandboxStatus: async (id) => state.sandboxes.get(id)?.status,
    listPodSandbox: async (uid) => [...idsOf(state, uid, state.sandboxes.keys())].flatMap((id) => state.sandboxes.get(id)?.status ?? []),
  }
}

/** Brings IPVS, the sets and the rules of this host in step with models (L3), and removes them. Nodes of other modes do not load it. */
import { check, type Exec } from '#host/exec'
import { createOwnChains, removeOwnChains } from '#host/iptables'
import { applyModels } from '../../applyModels.ts'
import { createRestoreMetrics } from '../../metrics.ts'
import type { Family, FamilyModel, ProxyModels } from '../../model.ts'
import { isWithin } from '../../ranges.ts'
import type { ProxyModeDeps } from '../mode.ts'
import {
  nextSet,
  onNode,
  owner,
  parseServers,
  type RenderedIpvs,
  renderIpvs,
  serverChanges,
  setCommands,
  setName,
  setTypes,
  type VirtualServers,
} from './render.ts'

const families = ['IPv4', 'IPv6'] as const
const familyFlags = { IPv4: '-4', IPv6: '-6' } as const

/** @param device holds the addresses of Services */
export async function applyIpvs(deps: ProxyModeDeps, models: ProxyModels, device: string, signal: AbortSignal): Promise<void> {
  const { exec, clock } = deps
  const turns = { next: () => clock.turn() }
  const chains = { IPv4: createOwnChains(exec, 'IPv4', owner, turns), IPv6: createOwnChains(exec, 'IPv6', owner, turns) }
  const { failures } = createRestoreMetrics(deps.metrics, deps.families ?? [])
  const apply = async (model: FamilyModel) => {
    const { family } = model
    const wanted = renderIpvs(model)
    // Rules refer to sets, and a set with a reference cannot be removed: all sets are there from the start.
    await fillSets(deps, family, wanted.sets)
    await chains[family].apply(wanted.chains).catch((error: unknown) => {
      failures.inc({ ip_family: family })
      throw error
    })
    await applyServers(exec, model, wanted.servers, device)
    await applyAddresses(exec, family, wanted.addresses, device)
  }
  await applyModels(apply, deps, models, signal)
}

/** Removes all but the device. */
export async function removeIpvs(exec: Exec): Promise<void> {
  await exec.run('ipvsadm', ['--clear'])
  for (const family of families) {
    await removeOwnChains(exec, family, owner)
    for (const name of Object.keys(setTypes)) await exec.run('ipset', ['destroy', setName(family, name)])
  }
}

/** One call for all sets; if the kernel refuses an entry, each set on its own, so that one Service does not stop the others. */
async function fillSets({ exec, log }: Pick<ProxyModeDeps, 'exec' | 'log'>, family: Family, sets: RenderedIpvs['sets']): Promise<void> {
  const restore = async (some: RenderedIpvs['sets']) => {
    await exec.run('ipset', ['destroy', nextSet])
    await check(exec, 'ipset', ['restore', '-exist'], { input: asInput(setCommands(family, some)) })
  }
  try {
    await restore(sets)
  } catch {
    for (const [name, entries] of sets) {
      await restore(new Map([[name, entries]])).catch((error: unknown) => log.error(error, 'A set of the proxy keeps its former entries', { name, family }))
    }
  }
}

const asInput = (lines: readonly string[]) => (lines.length === 0 ? '' : `${lines.join('\n')}\n`)

/** Brings the kernel's servers, also those of an earlier run, to `wanted`. Node ports are served on each address of the node. */
async function applyServers(exec: Exec, { family, nodePortCidrs }: FamilyModel, wanted: VirtualServers, device: string): Promise<void> {
  const local = (await addressesOf(exec, family)).filter(({ dev, ip }) => dev !== device && (!nodePortCidrs || isWithin(nodePortCidrs, ip)))
  const own = [...new Set(local.map(({ ip }) => ip))]
  const expanded = new Map([...wanted].flatMap(([server, endpoints]) => onNode(server, own, family).map((one) => [one, endpoints] as const)))
  const before = parseServers(await check(exec, 'ipvsadm', ['--save', '--numeric']), family)
  const changes = serverChanges(before, expanded)
  if (changes.length > 0) await check(exec, 'ipvsadm', ['--restore'], { input: asInput(changes) })
}

async function applyAddresses(exec: Exec, family: Family, wanted: readonly string[], device: string): Promise<void> {
  const there = new Set((await addressesOf(exec, family)).filter(({ dev }) => dev === device).map(({ ip }) => ip))
  const bits = family === 'IPv6' ? 128 : 32
  const keep = new Set(wanted)
  const commands = [
    ...wanted.filter((ip) => !there.has(ip)).map((ip) => `addr add ${ip}/${bits} dev ${device}${family === 'IPv6' ? ' nodad' : ''}`),
    ...[...there].filter((ip) => !keep.has(ip)).map((ip) => `addr del ${ip}/${bits} dev ${device}`),
  ]
  if (commands.length > 0) await check(exec, 'ip', [familyFlags[family], '-batch', '-'], { input: asInput(commands) })
}

interface ShownLink {
  readonly ifname: string
  readonly addr_info?: readonly { readonly local: string; readonly scope: string }[]
}

/** Link-local addresses are left out. */
async function addressesOf(exec: Exec, family: Family): Promise<{ readonly dev: string; readonly ip: string }[]> {
  const links = JSON.parse((await check(exec, 'ip', [familyFlags[family], '-json', 'addr', 'show'])) || '[]') as ShownLink[]
  return links.flatMap(({ ifname, addr_info = [] }) => addr_info.filter(({ scope }) => scope === 'global').map(({ local }) => ({ dev: ifname, ip: local })))
}

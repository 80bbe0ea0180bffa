/**
 * The host ports of a node's pods (L3): a file for each pod that has some, and one nftables table made of all files. Rendering is pure. Upstream's counterpart: the
 * reference plugin portmap.
 */
import { readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { hostPort, isIpv6 } from '#api/machinery/ip'
import type { Clock } from '#base/clock'
import type { Exec } from '#host/exec'
import { listIfExists, makeDirectory, writeFileAtomic } from '#host/files'
import { withLockFile } from '#host/lockFile'
import { createNftTable, type TableContents } from '#host/nftables'

export interface PortMapping {
  readonly hostPort: number
  readonly containerPort: number
  readonly protocol: string
  /** Empty: each address of the node. */
  readonly hostIP?: string | undefined
}

interface PodPorts {
  readonly ips: readonly string[]
  readonly mappings: readonly PortMapping[]
}

interface HostPortsPlace {
  readonly exec: Exec
  readonly clock: Clock
  readonly directory: string
}

const tableName = 'skiff-hostports'
const lockTimeoutMs = 20_000

export function addHostPorts(place: HostPortsPlace, containerId: string, ports: PodPorts): Promise<void> {
  return change(place, () => writeFileAtomic(path.join(place.directory, containerId), JSON.stringify(ports), 0o600))
}

/** A pod without host ports is fine. */
export async function removeHostPorts(place: HostPortsPlace, containerId: string): Promise<void> {
  if ((await listIfExists(place.directory)).includes(containerId)) await change(place, () => rm(path.join(place.directory, containerId), { force: true }))
}

/** Changes the files while no other process does, and brings the table in line. */
async function change({ exec, clock, directory }: HostPortsPlace, changeFiles: () => Promise<void>): Promise<void> {
  await makeDirectory(directory)
  const refuse = () => new Error('another process changes the host ports and does not end')
  await withLockFile(`${directory}.lock`, { clock, timeoutMs: lockTimeoutMs, refuse }, async () => {
    await changeFiles()
    const names = await listIfExists(directory)
    const all = await Promise.all(names.map((name) => readPorts(path.join(directory, name))))
    await createNftTable(exec, 'inet', tableName).apply(hostPortRules(all.filter((ports) => ports !== undefined)))
  })
}

/** A file that a crash cut short is removed: it must not keep the ports of other pods closed. */
async function readPorts(file: string): Promise<PodPorts | undefined> {
  const text = await readFile(file, 'utf8')
  try {
    const { ips, mappings } = JSON.parse(text) as PodPorts
    if (Array.isArray(ips) && Array.isArray(mappings)) return { ips, mappings }
  } catch {}
  await rm(file, { force: true })
  return undefined
}

/** Connections to a port of the node lead to the pod. Those of the pod itself, and of the node's 127.0.0.1, get an address that the pod can answer. */
export function hostPortRules(pods: readonly PodPorts[]): TableContents {
  const translations = pods.flatMap(({ ips, mappings }) => mappings.flatMap((mapping) => ips.flatMap((ip) => translationTo(ip, mapping) ?? [])))
  const toItself = pods.flatMap(({ ips }) => ips).map((ip) => `${familyOf(ip)} saddr ${ip} ${familyOf(ip)} daddr ${ip} ct status dnat masquerade`)
  const frame = `
	chain ports { }
	chain hairpins { }
	chain prerouting {
		type nat hook prerouting priority -100; policy accept;
		fib daddr type local jump ports
	}
	chain output {
		type nat hook output priority -100; policy accept;
		fib daddr type local jump ports
	}
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		ip saddr 127.0.0.0/8 ct status dnat masquerade
		jump hairpins
	}
`
  return {
    frame,
    chains: new Map([
      ['ports', translations],
      ['hairpins', toItself],
    ]),
    sets: new Map(),
    maps: new Map(),
  }
}

const familyOf = (ip: string) => (isIpv6(ip) ? 'ip6' : 'ip')
const anyAddress: ReadonlySet<string> = new Set(['', '0.0.0.0', '::'])

function translationTo(ip: string, { hostPort: onHost, containerPort, protocol, hostIP = '' }: PortMapping): string | undefined {
  const family = familyOf(ip)
  if (hostIP !== '' && familyOf(hostIP) !== family) return undefined
  const only = anyAddress.has(hostIP) ? `meta nfproto ${family === 'ip6' ? 'ipv6' : 'ipv4'} ` : `${family} daddr ${hostIP} `
  return `${only}${protocol.toLowerCase()} dport ${onHost} dnat ${family} to ${hostPort(ip, containerPort)}`
}

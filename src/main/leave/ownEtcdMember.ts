/**
 * The member of the cluster's etcd that runs on this machine (L5), which is taken out before the machine goes: a member that is only switched off still counts for the
 * majority. Upstream: kubeadm's phase remove-etcd-member of reset, for a member that kubeadm runs.
 */
import fs from 'node:fs/promises'
import os from 'node:os'
import type { Clock } from '#base/clock'
import { CommandError } from '#cli/exitCodes'
import { createEtcdAdministration, type EtcdAdministration, type EtcdMember } from '#store/drivers/etcd/administration'
import { removeById } from '../etcd/membership.ts'
import type { ControlPlanePlan } from '../join/controlPlanePlan.ts'

/** The member whose clients or peers reach it at one of the addresses. Pure. */
export function memberAt(members: readonly EtcdMember[], addresses: ReadonlySet<string>): EtcdMember | undefined {
  const isHere = (url: string) => URL.canParse(url) && addresses.has(new URL(url).hostname.replace(/^\[|\]$/g, ''))
  return members.find(({ clientUrls, peerUrls }) => [...clientUrls, ...peerUrls].some(isHere))
}

/** Those that other machines can use. */
export function ownAddresses(): Set<string> {
  const all = Object.values(os.networkInterfaces()).flatMap((found) => found ?? [])
  return new Set(all.filter(({ internal }) => !internal).map(({ address }) => address))
}

/** Runs `use` with the cluster's etcd, as the API server of the plan reaches it. */
export async function withPlannedEtcd<T>({ apiServer }: ControlPlanePlan, use: (etcd: EtcdAdministration) => Promise<T>): Promise<T> {
  const flagValue = (flag: string) => apiServer.findLast((word) => word.startsWith(`--${flag}=`))?.slice(flag.length + 3)
  const read = async (flag: string) => {
    const file = flagValue(flag)
    return file === undefined ? undefined : await fs.readFile(file, 'utf8')
  }
  const [ca, cert, key] = [await read('etcd-cafile'), await read('etcd-certfile'), await read('etcd-keyfile')]
  const tls = { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) }
  const etcd = createEtcdAdministration((flagValue('etcd-servers') ?? '').split(',').filter(Boolean), tls)
  try {
    return await use(etcd)
  } finally {
    etcd.close()
  }
}

/** @returns the member's name @throws CommandError notFound, or conflict when it is the last one with a vote */
export async function removeOwnMember(clock: Clock, etcd: EtcdAdministration, addresses: ReadonlySet<string>): Promise<string> {
  const members = await etcd.members()
  const own = memberAt(members, addresses)
  if (!own) {
    throw new CommandError('notFound', 'no member of the etcd of the cluster has an address of this machine', {
      hint: `leave --remove-etcd-member out; the members are ${members.map(({ name, clientUrls }) => `${name} (${clientUrls.join(' ')})`).join(', ')}`,
    })
  }
  if (!members.some(({ id, isLearner }) => id !== own.id && !isLearner)) {
    throw new CommandError('conflict', `member "${own.name}" on this machine is the last one with a vote: it has all the data`, {
      hint: 'add another member first, or leave --remove-etcd-member out',
    })
  }
  await removeById(clock, etcd, own.id)
  return own.name
}

/** The address from which this machine reaches a cluster (L5), by which the other machines reach it when it is a control plane. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { isAdvertisable, joinEndpoint } from '#cli/kubeadm/endpoint'
import type { Place } from './discovery.ts'

const connectMs = 5000

/** @throws CommandError timeout, or unmetPrerequisite for an address that is no use to other machines; the signal's reason when it aborts */
export async function localAddress(place: Place, clock: Clock, signal: AbortSignal): Promise<string> {
  using limit = deadlineScope({ clock, ms: connectMs, reason: () => new Error(`no connection within ${connectMs / 1000} s`) }, signal)
  const socket = connect({ ...place, signal: limit.signal })
  try {
    await once(socket, 'connect')
  } catch (error) {
    signal.throwIfAborted()
    const reason = messageOf(limit.signal.aborted ? limit.signal.reason : error)
    throw new CommandError('timeout', `no API server answers at ${joinEndpoint(place)}: ${reason}`, { cause: error })
  }
  const { localAddress: address = '' } = socket
  socket.destroy()
  if (isAdvertisable(address)) return address
  throw new CommandError('unmetPrerequisite', `this machine reaches the cluster from ${address}, at which the other control planes do not reach it`, {
    hint: 'name an address of this machine: --apiserver-advertise-address IP',
  })
}

/**
 * The process that serves local ports of a cluster (L5): it accepts on sockets that the server has bound on the host's loopback addresses, and connects in the
 * cluster's network namespace, where it runs. It has no other work, so that neither the API server's event loop delays a byte nor bulk transfers delay the
 * API server's dials. It ends when the server does. Upstream's counterpart: the port mappings of a node's container.
 */
import type { Socket as UdpSocket } from 'node:dgram'
import type { Server, Socket } from 'node:net'
import type { Forwarder } from '#host/forwarding/forwarder'
import { createTcpForwarding } from '#host/forwarding/tcpForwarding'
import { createUdpForwarding } from '#host/forwarding/udpForwarding'
import { createRealClock } from '../realClock.ts'
import type { ForwardMessage } from './forwardMessages.ts'

export function runForwarderProcess(): void {
  const clock = createRealClock()
  const tcp = createTcpForwarding(clock)
  const udp = createUdpForwarding(clock)
  const forwarders = new Map<number, Forwarder>()
  process.on('message', (message: ForwardMessage, handle: unknown) => {
    if ('serve' in message) {
      const { serve, protocol, targets } = message
      if (handle) forwarders.set(serve, protocol === 'UDP' ? udp.serve(handle as UdpSocket, targets) : tcp.serve(handle as Server, targets))
    } else if ('connectionOf' in message) {
      if (handle) forwarders.get(message.connectionOf)?.accept?.(handle as Socket)
    } else if ('targetsOf' in message) forwarders.get(message.targetsOf)?.setTargets(message.targets)
    else {
      forwarders.get(message.close)?.close()
      forwarders.delete(message.close)
    }
  })
  process.once('disconnect', () => process.exit(0))
  process.send?.('ready')
}

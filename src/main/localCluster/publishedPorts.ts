/** Whether the ports that a new cluster is to publish can be had (L5). */
import { CommandError } from '#cli/exitCodes'
import type { PublishedPort } from '#cli/publishedPorts'
import { portObstacle } from './freePort.ts'

/** @throws CommandError conflict or unmetPrerequisite that names the first port of TCP that cannot be bound; one of UDP is tried by the server */
export async function checkPublished(ports: readonly PublishedPort[] | undefined, realNodes: number): Promise<void> {
  if (ports === undefined) return
  if (realNodes === 0) throw new CommandError('unmetPrerequisite', '--publish is for nodes with containerd: simulated nodes have no network')
  for (const { protocol, port } of ports) {
    const obstacle = protocol === 'TCP' ? await portObstacle(port) : undefined
    if (obstacle === undefined) continue
    const text = `--publish ${port}: port ${port} of localhost`
    if (obstacle === 'inUse')
      throw new CommandError('conflict', `${text} is in use`, {
        hint: `end what listens there (ss -ltnp "sport = :${port}" names it), or publish another port`,
      })
    throw new CommandError('unmetPrerequisite', `${text} needs a right that this user has not`, {
      hint: 'publish a port from 1024 on, or run the command as root',
    })
  }
}

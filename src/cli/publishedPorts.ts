/** The ports of `skiff up --publish` (L4), as a command line has them. Pure. */
import { CommandError } from './exitCodes.ts'

/** A port of the host's localhost that leads to one of the nodes. */
export interface PublishedPort {
  readonly protocol: 'TCP' | 'UDP'
  readonly port: number
  readonly nodePort: number
}

const mostPorts = 64
const highest = 65_535

/** @throws CommandError usage */
export function publishedPorts(texts: readonly string[] | undefined): PublishedPort[] | undefined {
  if (texts === undefined) return undefined
  const ports = texts.flatMap((text) => text.split(',')).map(publishedPort)
  if (ports.length > mostPorts) throw new CommandError('usage', `--publish: at most ${mostPorts} ports`)
  const seen = new Set<string>()
  for (const { protocol, port } of ports) {
    if (seen.has(`${protocol}/${port}`)) throw new CommandError('usage', `--publish: port ${port} of localhost is there twice`)
    seen.add(`${protocol}/${port}`)
  }
  return ports
}

/** As it is written on the command line. */
export function publishedText(ports: readonly PublishedPort[]): string {
  return ports.map(({ protocol, port, nodePort }) => `${port}:${nodePort}${protocol === 'UDP' ? '/udp' : ''}`).join(',')
}

function publishedPort(text: string): PublishedPort {
  const [, port, nodePort = port, protocol = 'tcp'] = /^(\d{1,5})(?::(\d{1,5}))?(?:\/(tcp|udp))?$/i.exec(text) ?? []
  const isPort = (number: string | undefined) => Number(number) >= 1 && Number(number) <= highest
  if (!isPort(port) || !isPort(nodePort)) throw new CommandError('usage', `--publish ${text}: expected PORT:NODEPORT, such as 8080:80 or 5353:53/udp`)
  return { protocol: protocol.toLowerCase() === 'udp' ? 'UDP' : 'TCP', port: Number(port), nodePort: Number(nodePort) }
}

/** The ports of a pod or a Service (L4), each with the command that forwards it, to be copied: the page shows no content of pods. */
import { type ForwardedObject, forwardsOf } from '../../../model/forwards.ts'
import type { Kind } from '../../../model/places.ts'
import { Button } from '../../parts/basics.tsx'
import { copyCommand } from '../../parts/copyCommand.ts'
import { isStill } from '../../session.ts'

export function Ports({ kind, object }: { readonly kind: Kind; readonly object: ForwardedObject }) {
  const forwards = kind.group === '' ? forwardsOf(kind.resource, object) : []
  if (forwards.length === 0) return null
  return (
    <section class="panel" aria-label="Ports">
      <h2>Ports</h2>
      <ul class="force">
        {forwards.map(({ port, protocol, name, command }) => (
          <li key={`${port}/${protocol} ${name}`}>
            <span class="name">
              {port}/{protocol} <span class="quiet">{name}</span>
            </span>
            <Command command={isStill() ? undefined : command} protocol={protocol} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Command({ command, protocol }: { readonly command: string | undefined; readonly protocol: string }) {
  if (command === undefined) return <span class="why quiet">{protocol === 'TCP' ? '' : 'kubectl port-forward carries TCP alone'}</span>
  return (
    <>
      <code class="why">{command}</code>
      <Button onClick={() => void copyCommand(command)}>Copy</Button>
    </>
  )
}

/** An answer of `skiff why` (L4): whether the object waits, each cause with what shows it and the next command, and what the user may not read. */
import type { Answer, Cause } from '#why/answer'
import { objectPlace } from '../../model/places.ts'
import { targetOf } from '../../model/whyTargets.ts'
import { kinds } from '../state.ts'
import { Button, Status } from './basics.tsx'
import { copyCommand } from './copyCommand.ts'

const mostShown = 50

export function AnswerPanel({ answer: { state, causes, isSettled, notRead } }: { readonly answer: Answer }) {
  return (
    <section class="panel explanation" aria-label="Explanation">
      <p class="verdict">
        <Status text={isSettled ? 'does not wait' : 'waits'} tone={isSettled ? 'good' : causes.length > 0 ? 'bad' : 'busy'} />
        <span>{state}</span>
      </p>
      {causes.length > 0 && (
        <ol class="causes" aria-label="Causes">
          {causes.slice(0, mostShown).map((cause, index) => (
            <CauseItem key={`${index} ${cause.text}`} cause={cause} />
          ))}
        </ol>
      )}
      {causes.length > mostShown && <p class="quiet">and {causes.length - mostShown} more causes</p>}
      {causes.length === 0 && !isSettled && <p class="quiet">Nothing that was read shows why.</p>}
      {notRead.length > 0 && (
        <ul class="unread" aria-label="Not read">
          {notRead.map((what) => (
            <li key={what} class="quiet">
              Not read: {what}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function CauseItem({ cause: { text, evidence, next } }: { readonly cause: Cause }) {
  return (
    <li>
      <h3>{text}</h3>
      <dl>
        <dt>Shown by</dt>
        <dd>{evidence}</dd>
        {next !== undefined && (
          <>
            <dt>Next</dt>
            <dd class="next">
              <Next command={next} />
            </dd>
          </>
        )}
      </dl>
    </li>
  )
}

/** A command that explains another object leads to its explanation. */
function Next({ command }: { readonly command: string }) {
  const target = targetOf(command, kinds.value)
  return (
    <>
      {target ? (
        <a href={objectPlace(target.kind, target.object, 'why')}>
          Why {target.kind.kind} {target.object.name}
        </a>
      ) : (
        <code>{command}</code>
      )}
      <Button aria-label={`Copy: ${command}`} onClick={() => void copyCommand(command)}>
        Copy
      </Button>
    </>
  )
}

/** Rights (L4): the rules of this user in a namespace, and one question about any user with the rules that decide it. */
import { useSignal } from '@preact/signals'
import type { Rule } from '../../model/whoCan.ts'
import { get, write } from '../api.ts'
import { Facts, Failure, Loading, Status } from '../parts/basics.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { session } from '../session.ts'
import { namespace, set } from '../state.ts'
import { WhoCan } from './whoCan.tsx'

interface RulesReview {
  readonly status: { readonly resourceRules: readonly Rule[]; readonly nonResourceRules: readonly Rule[]; readonly incomplete: boolean }
}

export function Access() {
  const facts = session.value
  const scope = namespace.value || 'default'
  if (typeof facts === 'string') return null
  return (
    <section class="access">
      <header class="bar">
        <h1>Access</h1>
        <span>
          <strong>{facts.user}</strong> <span class="quiet">{facts.groups.join(', ')}</span>
        </span>
      </header>
      <Ask scope={scope} user={facts.user} groups={facts.groups} />
      <WhoCan scope={namespace.value} />
      <MyRules scope={scope} />
    </section>
  )
}

async function rulesIn(namespaceName: string): Promise<RulesReview['status']> {
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: namespaceName } }
  return (await write<RulesReview>('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', body)).body.status
}

function MyRules({ scope }: { readonly scope: string }) {
  const { value, error, again } = useAnswer(() => rulesIn(scope), scope)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  return (
    <section class="panel" aria-label="What I can do">
      <h2>
        What I can do <span class="quiet">in {scope}</span>
      </h2>
      <div class="matrix" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Resources</th>
              <th scope="col">API group</th>
              <th scope="col">Names</th>
              <th scope="col">Verbs</th>
            </tr>
          </thead>
          <tbody>
            {[...value.resourceRules, ...value.nonResourceRules].map((rule, index) => (
              <tr key={`${index}`}>
                <th scope="row" class="why">
                  {(rule.resources ?? rule.nonResourceURLs ?? []).join(', ')}
                </th>
                <td>{(rule.apiGroups ?? []).map((group) => group || 'core').join(', ')}</td>
                <td>{(rule.resourceNames ?? []).join(', ')}</td>
                <td class="verbs">
                  {rule.verbs.map((verb) => (
                    <span key={verb} class="chip">
                      {verb}
                    </span>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {value.incomplete && <p class="warning">The server could not name all rules: a webhook or the node authorizer decides, too.</p>}
    </section>
  )
}

interface AccessAnswer {
  readonly allowed: boolean
  readonly reason: string
  readonly groups: readonly string[]
  readonly rules: readonly { readonly binding: string; readonly role: string; readonly verbs: readonly string[] }[]
  readonly bindings: readonly string[]
}

function Ask({ scope, user: self, groups }: { readonly scope: string; readonly user: string; readonly groups: readonly string[] }) {
  const [user, verb, resource, name] = [useSignal(self), useSignal('get'), useSignal('pods'), useSignal('')]
  const asked = useSignal('')
  return (
    <section class="panel" aria-label="Ask about a user">
      <h2>May a user do something, and by which rule?</h2>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault()
          const query = { kind: 'access', namespace: scope, user: user.value, verb: verb.value, resource: resource.value, name: name.value }
          // The groups of this user are known; those of others are not.
          const known = user.value === self ? groups.map((group): [string, string] => ['group', group]) : []
          asked.value = `${new URLSearchParams([...Object.entries(query), ...known])}`
        }}
      >
        {(
          [
            ['User', user],
            ['Verb', verb],
            ['Resource', resource],
            ['Name', name],
          ] as const
        ).map(([label, field]) => (
          <label key={label}>
            {label}
            <input required={label !== 'Name'} value={field.value} onInput={({ currentTarget }) => set(field, currentTarget.value)} />
          </label>
        ))}
        <button type="submit" class="main">
          Ask
        </button>
      </form>
      {asked.value !== '' && <Answer query={asked.value} />}
    </section>
  )
}

function Answer({ query }: { readonly query: string }) {
  const { value, error } = useAnswer((signal) => get<AccessAnswer>(`/front/why?${query}`, { signal }), query)
  if (error !== '') return <Failure text={error} />
  if (!value) return <Loading text="Asking…" />
  const { allowed, reason, rules, bindings, groups } = value
  return (
    <div role="status" class="summary">
      <p>
        <Status text={allowed ? 'yes' : 'no'} tone={allowed ? 'good' : 'bad'} /> {reason}
      </p>
      <Facts
        facts={[
          ['Groups', groups.join(', ')],
          [allowed ? 'By the rules' : 'The nearest rules', rules.length > 0 && <RuleLines key="rules" rules={rules} />],
          ['Bindings of the user', bindings.join(', ') || 'none'],
        ]}
      />
    </div>
  )
}

function RuleLines({ rules }: Pick<AccessAnswer, 'rules'>) {
  return (
    <ul>
      {rules.map(({ binding, role, verbs }, index) => (
        <li key={`${index}`}>
          {role} through {binding}: {verbs.join(', ')}
        </li>
      ))}
    </ul>
  )
}

/** Asks for the subjects that may do something (L4), as far as the user may read roles and bindings. */
import { useSignal } from '@preact/signals'
import { type AccessObjects, type AccessQuestion, subjectText, whoCan } from '../../model/whoCan.ts'
import { get } from '../api.ts'
import { Failure, Loading } from '../parts/basics.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { kinds, set } from '../state.ts'

const group = '/apis/rbac.authorization.k8s.io/v1'

async function read(scope: string, signal: AbortSignal): Promise<AccessObjects> {
  const list = async (path: string) => (await get<{ items: readonly never[] }>(`${group}${path}`, { signal })).items
  const ofNamespace = (resource: string) => (scope === '' ? [] : list(`/namespaces/${encodeURIComponent(scope)}/${resource}`))
  const [roles, roleBindings, clusterRoles, clusterRoleBindings] = await Promise.all([
    ofNamespace('roles'),
    ofNamespace('rolebindings'),
    list('/clusterroles'),
    list('/clusterrolebindings'),
  ])
  return { roles, roleBindings, clusterRoles, clusterRoleBindings }
}

/** `deployments.apps`, or a plural alone, whose group the cluster knows. */
function groupOf(resource: string): { readonly group: string; readonly resource: string } {
  const [whole = '', subresource] = resource.split('/', 2)
  const [plural = '', ...rest] = whole.split('.')
  const found = rest.length > 0 ? rest.join('.') : (kinds.value.find((kind) => kind.resource === plural)?.group ?? '')
  return { group: found, resource: subresource === undefined ? plural : `${plural}/${subresource}` }
}

/** @param scope empty: all namespaces */
export function WhoCan({ scope }: { readonly scope: string }) {
  const [verb, resource] = [useSignal('delete'), useSignal('pods')]
  const asked = useSignal<Pick<AccessQuestion, 'verb' | 'group' | 'resource'> | undefined>(undefined)
  return (
    <section class="panel" aria-label="Subjects with a right">
      <h2>
        Who may do it <span class="quiet">{scope === '' ? 'in all namespaces' : `in ${scope}`}</span>
      </h2>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault()
          asked.value = { verb: verb.value.trim(), ...groupOf(resource.value.trim()) }
        }}
      >
        {(
          [
            ['The verb', verb],
            ['The resource', resource],
          ] as const
        ).map(([label, field]) => (
          <label key={label}>
            {label}
            <input required value={field.value} onInput={({ currentTarget }) => set(field, currentTarget.value)} />
          </label>
        ))}
        <button type="submit">List</button>
      </form>
      {asked.value && <Subjects question={{ ...asked.value, name: '', namespace: scope }} />}
    </section>
  )
}

function Subjects({ question }: { readonly question: AccessQuestion }) {
  const { value, error, again } = useAnswer((signal) => read(question.namespace, signal), `bindings ${question.namespace}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const found = whoCan(value, question)
  if (found.length === 0) return <p class="quiet">No binding allows it.</p>
  return (
    <div class="matrix" tabIndex={0}>
      <table aria-label="Subjects">
        <thead>
          <tr>
            {['Subject', 'Through', 'Role'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {found.map(({ subject, binding, role }, index) => (
            <tr key={`${index}`}>
              <th scope="row">{subjectText(subject)}</th>
              <td>{binding}</td>
              <td>{role}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

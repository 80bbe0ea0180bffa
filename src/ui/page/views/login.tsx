/** Logging in (L4): a code of `skiff ui`, or a bearer token; neither is kept by the page. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../parts/basics.tsx'
import { login, loginError } from '../session.ts'
import { set } from '../state.ts'

export function Login() {
  const [word, isBusy] = [useSignal(''), useSignal(false)]
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const submit = async () => {
    isBusy.value = true
    const text = word.value.trim()
    const code = /#code=([\w-]+)$/.exec(text)?.[1]
    await login(code === undefined ? { token: text } : { code })
    word.value = ''
    isBusy.value = false
  }
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h1>
          <Icon name="boat" /> Skiff
        </h1>
        <p>
          Open the address that <code>skiff ui</code> printed, or paste it here. A bearer token works, too: you get the rights of its user.
        </p>
        <label>
          Address or token
          <input type="password" autocomplete="off" required ref={field} value={word.value} onInput={({ currentTarget }) => set(word, currentTarget.value)} />
        </label>
        {loginError.value !== '' && (
          <p class="warning" role="alert">
            {loginError.value}
          </p>
        )}
        <button type="submit" class="main" disabled={isBusy.value}>
          Log in
        </button>
        <p class="quiet">
          A token for a service account: <code>kubectl create token NAME</code>
        </p>
      </form>
    </main>
  )
}

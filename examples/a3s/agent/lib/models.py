"""The models of two providers. A client is imported when it is first used, because the import takes a second or more."""

import os


def provider():
    return os.environ.get("LLM_PROVIDER", "anthropic")


def model():
    """Returns the name of the model, or an empty text if there is none."""
    return os.environ.get("LLM_MODEL", "")


def answer(prompt):
    """Asks the model. Its key is in the variable that the provider's client reads, such as ANTHROPIC_API_KEY."""
    messages = [{"role": "user", "content": prompt}]
    if provider() == "openai":
        import openai

        completion = openai.OpenAI().chat.completions.create(model=model(), messages=messages)
        return completion.choices[0].message.content or ""
    import anthropic

    message = anthropic.Anthropic().messages.create(model=model(), max_tokens=1024, messages=messages)
    return "".join(block.text for block in message.content if block.type == "text")

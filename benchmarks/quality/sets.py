"""Which repositories the figures are of, and what the main condition is called."""

TUNED_ON = ("flask", "click", "express", "gin")
"""The defaults were chosen on these: pallets/flask, pallets/click, expressjs/express,
gin-gonic/gin."""

SEEN = ("starlette", "httpx", "axios", "werkzeug", "requests")
"""Looked at while the defaults were chosen: encode/starlette, encode/httpx, axios/axios,
pallets/werkzeug, psf/requests."""

UNTOUCHED = ("marshmallow", "echo", "sinatra", "black", "tornado", "ripgrep", "fastify")
"""Replayed once, after the defaults stood: marshmallow-code/marshmallow, labstack/echo,
sinatra/sinatra, psf/black, tornadoweb/tornado, BurntSushi/ripgrep, fastify/fastify."""

SETS = {"tuned on": TUNED_ON, "seen": SEEN, "untouched": UNTOUCHED}

MAIN = "chunks, k = 8"

// From a request to its handler, and everything that is the same for all requests: who may ask,
// unknown paths and methods, common headers, the access log.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "server/access.h"
#include "server/backend.h"
#include "server/exchange.h"

namespace sluice {

class Router final : public HttpService {
 public:
  Router(const Backend& backend, const Access& access);

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  void handle(std::shared_ptr<Exchange> exchange) override;
  HttpResponse error_response(const HttpRequest& request, const ApiError& error) override;
  void complete_head(const HttpRequest& request, HttpResponse& response) override;
  void log(const HttpRequest& request, const AccessRecord& record) override;

 private:
  std::optional<ApiError> check_encoding(const HttpRequest& head) const;

  Backend backend_;
  Access access_;
};

}  // namespace sluice
